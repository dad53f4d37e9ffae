package addonstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Conditions of a ManagedClusterAddOn that OCM's tools read, with exactly OCM's reasons and messages.
const (
	configured          = "Configured"
	progressing         = "Progressing"
	registrationApplied = "RegistrationApplied"

	reasonConfigured    = "ConfigurationsConfigured"
	reasonNotConfigured = "ConfigurationsNotConfigured"
)

// configuredCondition is Configured with OCM's text; False while the cluster waits to be moved.
func configuredCondition(waits bool) metav1.Condition {
	if waits {
		return metav1.Condition{
			Type: configured, Status: metav1.ConditionFalse,
			Reason: reasonNotConfigured, Message: "Configurations updated and not configured yet",
		}
	}
	return metav1.Condition{
		Type: configured, Status: metav1.ConditionTrue,
		Reason: reasonConfigured, Message: "Configurations configured",
	}
}

// Waiting is Configured=False: the configuration of the cluster is known and not applied yet.
func Waiting() metav1.Condition { return configuredCondition(true) }

// Hindered are the conditions of a cluster to which nothing can be written: OCM's text first,
// then the object.
func Hindered(message string) []metav1.Condition {
	c := Waiting()
	c.Message += ": " + message
	return []metav1.Condition{c}
}

// Unsupported is Hindered for a kind of configuration that the add-on does not list.
func Unsupported(message string) []metav1.Condition {
	return append(Hindered(message), metav1.Condition{
		Type: progressing, Status: metav1.ConditionFalse,
		Reason: addonv1alpha1.ProgressingReasonConfigurationUnsupported, Message: message,
	})
}

// manifestsCondition says whether one of a cluster's agents applied its works. deploys: the agent has something to
// apply; in hosted mode only one of the two agents may have. refused: the agent reported that it could not apply them.
func manifestsCondition(deploys, refused bool) metav1.Condition {
	c := metav1.Condition{
		Type: addonv1alpha1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionTrue,
		Reason: addonv1alpha1.AddonManifestAppliedReasonManifestsApplied, Message: "manifests of addon are applied successfully",
	}
	switch {
	case refused:
		c.Status, c.Reason = metav1.ConditionFalse, addonv1alpha1.AddonManifestAppliedReasonManifestsApplyFailed
		c.Message = "failed to apply the manifests of addon"
	case !deploys:
		c.Message = "no manifest need to apply"
	}
	return c
}

// keepsProgressing reports whether Progressing already says that a move succeeded. A later
// change from InstallSucceed to UpgradeSucceed would be wrong, and one more write.
func keepsProgressing(cs []metav1.Condition) bool {
	c := meta.FindStatusCondition(cs, progressing)
	if c == nil || c.Status != metav1.ConditionFalse {
		return false
	}
	return slices.Contains([]string{v1alpha1.InstallSucceed, v1alpha1.UpgradeSucceed, v1alpha1.RollbackSucceed}, c.Reason)
}

// progressing words by kind of move: started, succeeded, failed.
var progressingReasons = map[string][3]string{
	"install":  {v1alpha1.Installing, v1alpha1.InstallSucceed, v1alpha1.InstallFailed},
	"upgrade":  {v1alpha1.Upgrading, v1alpha1.UpgradeSucceed, v1alpha1.UpgradeFailed},
	"rollback": {v1alpha1.RollingBack, v1alpha1.RollbackSucceed, v1alpha1.RollbackFailed},
}

// progressingCondition has the reasons of OCM's add-on lifecycle proposal.
func progressingCondition(m Move, fresh bool) metav1.Condition {
	kind, under := "upgrade", "upgrading..."
	switch {
	case fresh:
		kind, under = "install", "installing..."
	case m.Reverting:
		kind, under = "rollback", "rolling back..."
	}
	reasons := progressingReasons[kind]
	c := metav1.Condition{Type: progressing, Status: metav1.ConditionFalse}
	switch m.State {
	case Started:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasons[0], under
	case Done:
		c.Reason, c.Message = reasons[1], kind+" completed with no errors."
	case Failed:
		c.Reason, c.Message = reasons[2], kind+" failed: "+m.Reason
	}
	return c
}
