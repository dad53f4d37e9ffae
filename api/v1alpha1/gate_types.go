package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GateType names the condition of a gate.
type GateType string

const (
	// GateApproval waits for users, who create AddOnApprovals.
	GateApproval GateType = "approval"
	// GateWindow waits for a time of the week or of the calendar.
	GateWindow GateType = "window"
	// GatePrometheus waits for a measurement.
	GatePrometheus GateType = "prometheus"
	// GateWebhook waits for the answer of a web service.
	GateWebhook GateType = "webhook"
)

// Measured reports whether the verdict of a gate of the type is a measurement, which is repeated.
func (t GateType) Measured() bool { return t == GatePrometheus || t == GateWebhook }

// GateState is the state of a gate's verdict.
type GateState string

const (
	// GateWaiting: there is no verdict yet.
	GateWaiting GateState = "Waiting"
	// GatePassed: the gate lets the stage continue.
	GatePassed GateState = "Passed"
	// GateFailed: the gate halts the stage.
	GateFailed GateState = "Failed"
	// GateError: the gate could not be evaluated. It never counts as Passed.
	GateError GateState = "Error"
)

// Gates of a stage. They also apply to first installs. A revert does not wait for them, except for a window with
// holdsReverts.
type Gates struct {
	// Before are evaluated when the stage could start. While one of them is not Passed, no
	// cluster of the stage is admitted.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:XValidation:rule="self.all(g, !has(g.failures) && !has(g.errorAfter))",message="failures and errorAfter are for a gate in during"
	// +listType=map
	// +listMapKey=name
	// +optional
	Before []Gate `json:"before,omitempty"`
	// During are evaluated every interval, from the stage's first admission to the end of its last soak. The stage
	// completes when an evaluation that began after that soak has Passed. Only prometheus and webhook are possible.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:XValidation:rule="self.all(g, g.type in ['prometheus', 'webhook'])",message="a gate in during must be of type prometheus or webhook"
	// +listType=map
	// +listMapKey=name
	// +optional
	During []Gate `json:"during,omitempty"`
}

// Gate is one condition on a stage.
// +kubebuilder:validation:XValidation:rule="(self.type == 'approval') == has(self.approval) && (self.type == 'window') == has(self.window) && (self.type == 'prometheus') == has(self.prometheus) && (self.type == 'webhook') == has(self.webhook)",message="a gate has exactly the field that its type names"
// +kubebuilder:validation:XValidation:rule="self.type in ['prometheus', 'webhook'] || !(has(self.interval) || has(self.failures) || has(self.errorAfter))",message="interval, failures and errorAfter are for type prometheus and webhook"
type Gate struct {
	// Name of the gate, unique in its stage.
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// Type of the gate. The field of the same name configures it.
	// +kubebuilder:validation:Enum=approval;window;prometheus;webhook
	Type GateType `json:"type"`
	// Approval configures type approval. An empty object accepts the approval of every user who
	// may create AddOnApprovals.
	// +optional
	Approval *ApprovalGate `json:"approval,omitempty"`
	// Window configures type window.
	// +optional
	Window *WindowGate `json:"window,omitempty"`
	// Prometheus configures type prometheus.
	// +optional
	Prometheus *PrometheusGate `json:"prometheus,omitempty"`
	// Webhook configures type webhook.
	// +optional
	Webhook *WebhookGate `json:"webhook,omitempty"`

	// Interval between two evaluations; 1m if absent. At least 1s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Failures is how many evaluations in a row must fail before a gate in during fails; 1 if
	// absent.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Failures *int32 `json:"failures,omitempty"`
	// ErrorAfter is how long a gate in during may be without an evaluation before the stage
	// admits no further cluster; 10m if absent. The stage continues with the next evaluation.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +optional
	ErrorAfter *metav1.Duration `json:"errorAfter,omitempty"`
}

// ApprovalGate waits for users. Each creates an AddOnApproval; the API server proves its author. With forge, comments
// on the pull request count, too.
type ApprovalGate struct {
	// Approvers are the users whose decisions count. Absent: every user who may create AddOnApprovals.
	// +optional
	Approvers *Approvers `json:"approvers,omitempty"`
	// Count is how many different approvers must approve; 1 if absent.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	// +optional
	Count *int32 `json:"count,omitempty"`
	// Forge accepts comments on the pull request that introduced the content, in addition to the approvals of
	// approvers. Absent: comments do not count.
	// +optional
	Forge *ForgeApproval `json:"forge,omitempty"`
}

// ForgePermission is what an account may do in the repository of a forge.
// +kubebuilder:validation:Enum=write;maintain;admin
type ForgePermission string

// The permissions of a forge, from the lowest. Gitea and Forgejo have no maintain; there it needs admin.
const (
	ForgeWrite    ForgePermission = "write"
	ForgeMaintain ForgePermission = "maintain"
	ForgeAdmin    ForgePermission = "admin"
)

// ForgeApproval says which comments on the merged pull request count, at GitHub, GitLab, Gitea and Forgejo. The
// account must have the permission in the repository when its comment is used.
type ForgeApproval struct {
	// Permission that the account needs at least.
	// +kubebuilder:default=maintain
	// +optional
	Permission ForgePermission `json:"permission,omitempty"`
	// Users are the logins of the accounts whose comments count; empty: every account with the permission.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=set
	// +optional
	Users []string `json:"users,omitempty"`
	// NotAuthor: comments of the authors of the change do not count. Authors are the accounts that opened a pull
	// request that was merged since the stable content, the authors and committers of its commits, and the authors of
	// commits that were pushed since then without a pull request. If the forge names no account for one of them, no
	// comment counts. GitLab names no account, so no comment counts there.
	// +optional
	NotAuthor bool `json:"notAuthor,omitempty"`
}

// Approvers are users and groups as the API server authenticates them. A member of either list
// is an approver.
// +kubebuilder:validation:XValidation:rule="has(self.users) && size(self.users) > 0 || has(self.groups) && size(self.groups) > 0",message="approvers needs a user or a group"
type Approvers struct {
	// Users by name.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	Users []string `json:"users,omitempty"`
	// Groups by name.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	Groups []string `json:"groups,omitempty"`
}

// WindowGate is open at the times of allow, and closed at the times of exclude, which take precedence. Without allow,
// it is open except at the times of exclude; with neither, it never closes. It is evaluated at every admission:
// clusters in flight continue when it closes.
type WindowGate struct {
	// TimeZone of every time of the window, an IANA name such as Europe/Berlin.
	// +kubebuilder:validation:MinLength=1
	TimeZone string `json:"timeZone"`
	// Allow are the times at which the window is open; absent: always.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Allow []TimeRange `json:"allow,omitempty"`
	// Exclude are the times at which the window is closed.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Exclude []TimeRange `json:"exclude,omitempty"`
	// HoldsReverts: the window also holds reverts and rollbacks.
	// +optional
	HoldsReverts bool `json:"holdsReverts,omitempty"`
}

// TimeRange is a recurring time: a cron expression for its begin and a duration, or weekdays and hours.
// +kubebuilder:validation:XValidation:rule="has(self.cron) == has(self.duration) && has(self.cron) != (has(self.weekdays) || has(self.hours))",message="a time has cron and duration, or weekdays and hours"
type TimeRange struct {
	// Cron is the begin of the time: minute, hour, day of month, month and weekday. If both days are given, the time
	// begins on each of them. If daylight saving skips the begin, the time begins at the change; if the begin occurs
	// twice, the time begins twice.
	// +kubebuilder:validation:MaxLength=100
	// +optional
	Cron string `json:"cron,omitempty"`
	// Duration of the time that begins at cron, above zero.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(s|m|h))+$"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
	// Weekdays, such as [Mon, Tue, Fri]; every day if absent.
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:items:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
	// +listType=set
	// +optional
	Weekdays []string `json:"weekdays,omitempty"`
	// Hours of the day, such as 09:00-17:00; the whole day if absent. If the end is not after the
	// start, it is on the next day.
	// +kubebuilder:validation:Pattern="^([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"
	// +optional
	Hours string `json:"hours,omitempty"`
}

// PrometheusGate passes while the result of a query is within its limits. The query must return one number, a scalar
// or a vector of one element. NaN, Inf and an answer with warnings are errors. In the query, $moved stands for the
// label matcher of the clusters that are Soaking or Done with the content of the rollout, such as cluster=~"c1|c7".
// While there is no such cluster, a query with $moved is not sent, and the gate is Waiting.
// +kubebuilder:validation:XValidation:rule="has(self.max) || has(self.min) || has(self.maxRatio)",message="a prometheus gate needs max, min or maxRatio"
// +kubebuilder:validation:XValidation:rule="has(self.maxRatio) == has(self.control)",message="maxRatio and control must be set together"
type PrometheusGate struct {
	// Address of the Prometheus API, such as https://prometheus.example.com. It may have a path. Queries are POSTs to
	// api/v1/query below it. Plain http needs the operator's flag --gate-allow-http. Loopback and link-local
	// addresses, and metadata services of clouds, need --gate-allow-loopback.
	// +kubebuilder:validation:Pattern="^https?://[^\\s]+$"
	// +kubebuilder:validation:MaxLength=2048
	Address string `json:"address"`
	// SecretRef names a Secret in the namespace of the rollout: bearerToken, or username and password; and optionally
	// ca.crt. The Secret must have the annotation addonflow.io/gate-host with the host of address.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// ClusterLabel is the label that names the cluster in $moved and $control; cluster if absent.
	// +kubebuilder:validation:Pattern="^[a-zA-Z_][a-zA-Z0-9_]*$"
	// +kubebuilder:validation:MaxLength=100
	// +optional
	ClusterLabel string `json:"clusterLabel,omitempty"`
	// Query in PromQL.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`
	// Control is the query with whose result the result of query is compared. In it, $control stands for the label
	// matcher of the available clusters of the install set that run the stable revision and are not in flight.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Control string `json:"control,omitempty"`
	// Max is the greatest result that passes.
	// +optional
	Max *float64 `json:"max,omitempty"`
	// Min is the least result that passes.
	// +optional
	Min *float64 `json:"min,omitempty"`
	// MaxRatio is the greatest quotient of the results of query and control that passes. While control has $control
	// and there is no such cluster, the quotient is not evaluated, and only max and min count. If both results are 0,
	// the quotient is 0. Otherwise, a control of 0 or less is an error.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRatio *float64 `json:"maxRatio,omitempty"`
}

// WebhookGate calls a web service. The service gets a POST with the JSON object {"rollout", "namespace", "stage",
// "gate", "digest", "commit", "attempt", "counts"}. It answers 200 with {"state": "Passed", "message": "..."}; state
// is Passed, Failed or Waiting. With a key, the header X-Signature-256 is "sha256=" and the HMAC-SHA256 of the body
// in hexadecimal digits.
type WebhookGate struct {
	// URL of the service. Plain http needs the operator's flag --gate-allow-http. Loopback and link-local addresses,
	// and metadata services of clouds, need --gate-allow-loopback.
	// +kubebuilder:validation:Pattern="^https?://[^\\s]+$"
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// SecretRef names a Secret in the namespace of the rollout: key, with which requests are signed, including a line
	// break at its end; and optionally ca.crt. The Secret must have the annotation addonflow.io/gate-host with the
	// host of url.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
}

// GateStatus is the verdict of one gate.
type GateStatus struct {
	// Name of the gate.
	Name string `json:"name"`
	// When is Before or During.
	// +kubebuilder:validation:Enum=Before;During
	When GateMoment `json:"when"`
	// Type of the gate.
	Type GateType `json:"type"`
	// State is Waiting, Passed, Failed or Error.
	State GateState `json:"state"`
	// Reason in words.
	// +optional
	Reason string `json:"reason,omitempty"`
	// By names the users who decided.
	// +optional
	By string `json:"by,omitempty"`
	// Since is when the gate entered its state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// EvaluatedAt is when the last evaluation with a result began.
	// +optional
	EvaluatedAt *metav1.Time `json:"evaluatedAt,omitempty"`
	// FailedInARow counts the failed evaluations since the last passed one.
	// +optional
	FailedInARow int32 `json:"failedInARow,omitempty"`
	// BeganAt is when an approval gate with forge got its first state in this attempt. After a retry, comments that are
	// older do not count.
	// +optional
	BeganAt *metav1.Time `json:"beganAt,omitempty"`
	// LastComment is the newest comment at the forge that was entered as a decision. It stays after the AddOnApproval
	// was deleted: then only newer approvals count.
	// +optional
	LastComment int64 `json:"lastComment,omitempty"`
}

// GateMoment is when a gate is evaluated.
type GateMoment string

const (
	// GateBefore: before the first admission of the stage.
	GateBefore GateMoment = "Before"
	// GateDuring: from the first admission of the stage to the end of its last soak.
	GateDuring GateMoment = "During"
)
