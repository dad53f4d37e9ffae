package v1alpha1

import (
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddOnSourceKind is the kind of AddOnSource.
const AddOnSourceKind = "AddOnSource"

// GitHubProvider is the value of spec.provider for a GitHub App.
const GitHubProvider = "github"

// MaxTimeout is the longest spec.timeout of an AddOnSource. A server that never answers takes a place of the operator
// for this time.
const MaxTimeout = 10 * time.Minute

// AddOnSourceSpec names the Git repository, or the artifact, in which add-ons are declared. Field names and meaning
// are those of Flux's GitRepository and Kustomization.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) != has(self.oci)",message="exactly one of url and oci is given"
// +kubebuilder:validation:XValidation:rule="!has(self.oci) || !has(self.ref) && !has(self.secretRef) && !has(self.provider) && !has(self.verify) && !has(self.pullRequests) && !has(self.allowForcePush)",message="ref, secretRef, provider, verify, pullRequests and allowForcePush are about a Git repository; with oci, set oci.ref, oci.secretRef or oci.verify"
// +kubebuilder:validation:XValidation:rule="!has(self.oci) || !has(self.commitStatus) || !has(self.commitStatus.revertPullRequest) || !self.commitStatus.revertPullRequest",message="commitStatus.revertPullRequest needs a Git repository; with oci, leave it out"
type AddOnSourceSpec struct {
	// URL of the Git repository: https:// or http:// without credentials, ssh://user@host/path, or
	// user@host:path.
	// +kubebuilder:validation:Pattern="^(https?://[^@]+|ssh://([^@/:]+@)?[^@]+|[^@/:]+@[^@/:]+:.+)$"
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`

	// OCI is an artifact in a registry that flux push artifact wrote, instead of a Git repository.
	// +optional
	OCI *OCISpec `json:"oci,omitempty"`

	// Provider is how the operator authenticates. generic (the default) uses the keys of secretRef for the URL's
	// transport; github uses a GitHub App.
	// +kubebuilder:validation:Enum=generic;github
	// +optional
	Provider string `json:"provider,omitempty"`

	// Reference is the revision to follow; the branch master if absent.
	// +optional
	Reference *GitReference `json:"ref,omitempty"`

	// Interval between two checks of the repository.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="interval must be at least 10s"
	// +required
	Interval metav1.Duration `json:"interval"`

	// Timeout of one Git operation, or of the read of one chart or artifact of a registry; 60s if absent, at most
	// 10m.
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('10m')",message="timeout must be at most 10m"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Path of the directory in the repository that declares the add-ons; the
	// root of the repository if absent.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`

	// SecretRef names a Secret in the same namespace with credentials, in the layout of Flux's
	// GitRepository. For https: username and password, or bearerToken; tls.crt and tls.key for a
	// client certificate; ca.crt for a private certificate authority. For ssh: identity and known_hosts, and password if the identity is
	// encrypted. With provider github: githubAppID, githubAppInstallationID and
	// githubAppPrivateKey, and githubAppBaseURL of a GitHub Enterprise Server.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`

	// ProxySecretRef names a Secret in the same namespace with an HTTP proxy for the repository:
	// address, and username and password if the proxy needs them.
	// +optional
	ProxySecretRef *meta.LocalObjectReference `json:"proxySecretRef,omitempty"`

	// Verify says which signatures a commit needs before it is rendered.
	// +optional
	Verify *VerifySpec `json:"verify,omitempty"`

	// AllowForcePush lets a branch move to a commit that does not contain the applied one.
	// Otherwise such a commit is refused.
	// +optional
	AllowForcePush bool `json:"allowForcePush,omitempty"`

	// Ignore lists paths that are not read, in .gitignore syntax.
	// +optional
	Ignore *string `json:"ignore,omitempty"`

	// Prune approves the removal, within the removal budget, of add-ons and objects that a commit no longer declares.
	// +optional
	Prune bool `json:"prune,omitempty"`

	// Suspend stops reading the repository; current rollouts continue.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ServiceAccountName is a ServiceAccount of the same namespace. The operator reads and applies declared objects,
	// except AddOnRollouts, as this account. With it, a commit may declare objects of further kinds, within the
	// rights of the account.
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// AddOns is the allow-list of add-on names this source may declare; empty
	// allows every name.
	// +listType=set
	// +optional
	AddOns []string `json:"addOns,omitempty"`

	// Registries are the OCI registries from which AddOnPackages may take charts; without them,
	// charts are read from the repository only.
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Registries []RegistrySpec `json:"registries,omitempty"`

	// CommitStatus says where commit statuses are posted; if absent, none are posted. For an artifact, statuses are
	// posted to the commit in its annotation org.opencontainers.image.revision, which flux push artifact --revision
	// writes.
	// +optional
	CommitStatus *CommitStatusSpec `json:"commitStatus,omitempty"`

	// Webhook accepts webhooks of the forge about new commits. Their path is in the status.
	// +optional
	Webhook *WebhookSpec `json:"webhook,omitempty"`

	// PullRequests says whether open requests into the branch, at most 20, get a plan: one comment and a status. The
	// context of the status is addonflow-plan/<source>, or spec.commitStatus.context with -plan after its first part.
	// +optional
	PullRequests *PullRequestsSpec `json:"pullRequests,omitempty"`
}

// PullRequestsSpec says which pull requests (at GitLab: merge requests) get a plan. Plans need
// spec.commitStatus with provider forgejo, gitea, github or gitlab, and a source that follows a
// branch.
type PullRequestsSpec struct {
	// Enabled turns plans on. The token of spec.commitStatus then also needs to read pull requests
	// and to comment on them.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Forks also plans requests whose branch is in another repository. For them, nothing is read from the hub, so
	// clusters are not counted. Without Forks, nothing of such requests is read.
	// +optional
	Forks bool `json:"forks,omitempty"`
	// ClusterNames shows the names of clusters to all readers of the repository. Values of clusters,
	// such as labels, are never shown.
	// +optional
	ClusterNames bool `json:"clusterNames,omitempty"`
}

// OCISpec is an artifact in an OCI registry. Field names and meaning are those of Flux's
// OCIRepository.
type OCISpec struct {
	// URL of the repository in a registry, oci://host/repository.
	// +kubebuilder:validation:Pattern="^oci://[^@]+$"
	// +kubebuilder:validation:MaxLength=1024
	// +required
	URL string `json:"url"`
	// Reference is the artifact to follow; the tag latest if absent.
	// +optional
	Reference *OCIReference `json:"ref,omitempty"`
	// SecretRef names a Secret in the same namespace. It has the form of the Secrets of registries.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// Insecure reads the registry over plain http. A flag of the operator must allow it.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// Verify says which signatures an artifact needs before it is read.
	// +optional
	Verify *OCIVerifySpec `json:"verify,omitempty"`
}

// OCIReference is the artifact to follow. Precedence: digest, semver, tag.
type OCIReference struct {
	// Digest of an artifact.
	// +kubebuilder:validation:Pattern="^sha256:[0-9a-f]{64}$"
	// +optional
	Digest string `json:"digest,omitempty"`
	// SemVer range of tags; the highest matching tag is followed.
	// +optional
	SemVer string `json:"semver,omitempty"`
	// Tag to follow.
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$"
	// +optional
	Tag string `json:"tag,omitempty"`
}

// OCIVerifySpec says which signatures a digest in a registry needs.
type OCIVerifySpec struct {
	// Provider of signatures: cosign. The key is an ECDSA key, and the signature is in a tag that ends in .sig.
	// +kubebuilder:validation:Enum=cosign
	// +kubebuilder:default=cosign
	// +optional
	Provider string `json:"provider,omitempty"`
	// SecretRef names a Secret in the same namespace with public keys in entries that end in
	// .pub; one of them must have signed.
	// +required
	SecretRef meta.LocalObjectReference `json:"secretRef"`
}

// RegistrySpec is an OCI registry and the settings to read it.
type RegistrySpec struct {
	// Host of the registry, with a port if it is not 443, such as registry.example.com:5000.
	// +kubebuilder:validation:Pattern="^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?$"
	// +kubebuilder:validation:MaxLength=255
	// +required
	Host string `json:"host"`
	// SecretRef names a Secret in the same namespace: .dockerconfigjson with the credentials, as
	// in a Secret of type kubernetes.io/dockerconfigjson; ca.crt for a private certificate
	// authority.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// Insecure reads the registry over plain http. A flag of the operator must allow it.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// Verify says which signatures a chart of the registry needs before it is read.
	// +optional
	Verify *OCIVerifySpec `json:"verify,omitempty"`
}

// Address returns the URL of the repository or of the artifact.
func (s AddOnSourceSpec) Address() string {
	if s.OCI != nil {
		return s.OCI.URL
	}
	return s.URL
}

// WebhookSpec says which webhooks are accepted.
type WebhookSpec struct {
	// Type is how the forge proves that a webhook is its own.
	// +kubebuilder:validation:Enum=azuredevops;bitbucket;bitbucketserver;forgejo;generic-hmac;gitea;github;gitlab
	// +required
	Type string `json:"type"`
	// SecretRef names a Secret in the same namespace with the key token.
	// +required
	SecretRef meta.LocalObjectReference `json:"secretRef"`
}

// WebhookGeneric is the type of a webhook that is not of a known forge.
const WebhookGeneric = "generic-hmac"

// WebhookPathPrefix begins status.webhookPath.
const WebhookPathPrefix = "/hook/"

// GitReference is the revision to follow. Precedence: commit, name, semver, tag, branch.
type GitReference struct {
	// Branch to follow; master if no other field is set.
	// +optional
	Branch string `json:"branch,omitempty"`
	// Tag to follow.
	// +optional
	Tag string `json:"tag,omitempty"`
	// SemVer range of tags; the highest matching tag is followed.
	// +optional
	SemVer string `json:"semver,omitempty"`
	// Name is a full reference name such as refs/pull/420/head.
	// +optional
	Name string `json:"name,omitempty"`
	// Commit is a full commit sha.
	// +kubebuilder:validation:Pattern="^[0-9a-f]{40}$"
	// +optional
	Commit string `json:"commit,omitempty"`
}

// VerifyMode says which objects must be signed.
// +kubebuilder:validation:Enum=HEAD;Tag;TagAndHEAD
type VerifyMode string

const (
	// VerifyHEAD: the commit.
	VerifyHEAD VerifyMode = "HEAD"
	// VerifyTag: the tag.
	VerifyTag VerifyMode = "Tag"
	// VerifyTagAndHEAD: both.
	VerifyTagAndHEAD VerifyMode = "TagAndHEAD"
)

// VerifySpec says which signatures a commit needs.
type VerifySpec struct {
	// Mode is the object that must be signed: the commit (HEAD), the tag, or both. Tag and TagAndHEAD need a ref with
	// tag or semver.
	// +kubebuilder:default=HEAD
	// +optional
	Mode VerifyMode `json:"mode,omitempty"`
	// SecretRef names a Secret in the same namespace with public keys: OpenPGP keys in entries
	// that end in .asc or have another name, and SSH keys in entries that end in .sshpub.
	// +required
	SecretRef meta.LocalObjectReference `json:"secretRef"`
}

// CommitStatusSpec says where commit statuses are posted.
type CommitStatusSpec struct {
	// Provider is the forge's API.
	// +kubebuilder:validation:Enum=azuredevops;bitbucket;bitbucketserver;forgejo;gitea;github;githubchecks;gitlab
	// +required
	Provider string `json:"provider"`
	// Address of the repository on the forge, such as https://gitea.example/team/fleet.
	// +kubebuilder:validation:Pattern="^https?://[^@]+$"
	// +required
	Address string `json:"address"`
	// SecretRef names a Secret in the same namespace with the key token, or for a GitHub App: githubAppID,
	// githubAppInstallationID and githubAppPrivateKey, and githubAppBaseURL of a GitHub Enterprise Server. It has
	// ca.crt if a private certificate authority signed the forge's certificate.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// Context is the prefix of the contexts that are posted; addonflow/<source> if absent.
	// +kubebuilder:validation:MaxLength=100
	// +optional
	Context string `json:"context,omitempty"`
	// TargetURL is the link of the statuses.
	// +kubebuilder:validation:Pattern="^https?://.+$"
	// +kubebuilder:validation:MaxLength=255
	// +optional
	TargetURL string `json:"targetURL,omitempty"`
	// Detail says which contexts are reported. source: only the context of the source. addOn: also one context for
	// each add-on that a commit changes or moves. stage (the default): also one context for each of its stages.
	// +optional
	Detail CommitStatusDetail `json:"detail,omitempty"`
	// RevertPullRequest opens a pull request after a rollback, at GitHub, GitLab, Gitea and Forgejo, for a source
	// that follows a branch. Its branch addonflow/revert-... restores the files of the add-on from the commit whose
	// content the clusters run again. It is opened once for each rollout, and only if the restored files give that
	// content and change nothing else. AddonFlow never merges it. The token must have the right to push branches and
	// to open pull requests.
	// +optional
	RevertPullRequest bool `json:"revertPullRequest,omitempty"`
}

// CommitStatusDetail says which contexts a commit has.
// +kubebuilder:validation:Enum=source;addOn;stage
type CommitStatusDetail string

const (
	// DetailSource: only the context of the source.
	DetailSource CommitStatusDetail = "source"
	// DetailAddOn: also the contexts of add-ons.
	DetailAddOn CommitStatusDetail = "addOn"
	// DetailStage: also the contexts of stages.
	DetailStage CommitStatusDetail = "stage"
)

// DetailOrDefault returns the detail. Without commitStatus, it is "", because nothing is reported.
func (s *CommitStatusSpec) DetailOrDefault() CommitStatusDetail {
	switch {
	case s == nil:
		return DetailSource
	case s.Detail == "":
		return DetailStage
	default:
		return s.Detail
	}
}

// AddOnSourceStatus is the observed state of a source.
type AddOnSourceStatus struct {
	// ObservedGeneration is the generation of the spec for which this status was written.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions Ready, Reconciling, Stalled, CommitStatusReported, CommitStatusDenied, RevertProposed and Overridden.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastAttemptedRevision is the newest revision that was read, <ref>@sha1:<commit>.
	// +optional
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// LastAttemptedSpec is a fingerprint of the spec fields that decide the built content, so that a commit is judged
	// again after a change of, for example, path or ignore.
	// +optional
	LastAttemptedSpec string `json:"lastAttemptedSpec,omitempty"`
	// LastAppliedRevision is the newest revision that was applied to the hub.
	// +optional
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`

	// LastAppliedFields is a fingerprint of the stored objects after the last apply: their content, and the fields
	// that AddonFlow owns. It shows a change by another writer, even after a restart.
	// +optional
	LastAppliedFields string `json:"lastAppliedFields,omitempty"`

	// AddOns the applied commit declares, sorted by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	AddOns []SourcedAddOn `json:"addOns,omitempty"`

	// Inventory of hub objects applied from this source, sorted.
	// +optional
	Inventory []ObjectReference `json:"inventory,omitempty"`

	// WebhookPath is the path of the webhooks of the source, /hook/<32 random hex>.
	// +optional
	WebhookPath string `json:"webhookPath,omitempty"`

	// CommitStatuses are the marks of the statuses that the forge accepted, and of those that are still owed to it.
	// +optional
	CommitStatuses []CommitMark `json:"commitStatuses,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
	meta.ForceRequestStatus     `json:",inline"`
}

// SourcedAddOn names the content of one add-on in the applied commit.
type SourcedAddOn struct {
	// Name of the add-on.
	Name string `json:"name"`
	// Revision is the name of its AddOnRevision.
	Revision string `json:"revision"`
	// Digest of its content.
	Digest string `json:"digest"`
	// Commit that introduced this content, <ref>@sha1:<commit>.
	Commit string `json:"commit"`
	// Author of that commit, by the name that Git has; absent: not known.
	// +optional
	Author string `json:"author,omitempty"`
	// Subject is the first line of the message of that commit.
	// +optional
	Subject string `json:"subject,omitempty"`
	// PolicyCommit is the AddOnRollout's spec.policyCommit.
	// +optional
	PolicyCommit string `json:"policyCommit,omitempty"`
	// Policy is a digest of the declarations of the AddOnRollout besides the content.
	// +optional
	Policy string `json:"policy,omitempty"`
}

// Declares reports whether the spec of an AddOnRollout is that of the applied commit. A source writes the spec first
// and its own status last.
func (a SourcedAddOn) Declares(spec *AddOnRolloutSpec) bool {
	return spec.Target != nil && spec.Target.Digest == a.Digest && spec.Target.Commit == a.Commit && spec.PolicyCommit == a.PolicyCommit
}

// ObjectReference names one hub object.
type ObjectReference struct {
	// APIVersion in which the object was applied.
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace, empty for a cluster-scoped object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
}

// AddOnSource is a Git repository, or an artifact in a registry, in which add-ons are declared.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=aosrc,categories=addonflow
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Overridden",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Overridden")].reason`
type AddOnSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AddOnSourceSpec   `json:"spec,omitempty"`
	Status AddOnSourceStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions, as fluxcd's runtime reads them.
func (s *AddOnSource) GetConditions() []metav1.Condition { return s.Status.Conditions }

// SetConditions replaces the conditions, as fluxcd's runtime writes them.
func (s *AddOnSource) SetConditions(c []metav1.Condition) { s.Status.Conditions = c }

// AddOnSourceList is a list of AddOnSources.
// +kubebuilder:object:root=true
type AddOnSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnSource `json:"items"`
}
