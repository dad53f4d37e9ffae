package v1alpha1

// CommitReport is the durable memory of one attempt to tell the forge about one
// context of one commit; the rules it obeys are those of package commitstatus,
// which has the same fields.
type CommitReport struct {
	// SHA is the full commit sha.
	SHA string `json:"sha"`
	// Context names what is judged.
	Context string `json:"context"`
	// Attempt counts from 1.
	Attempt int `json:"attempt"`
	// State the forge shall show: pending, success, failure or error.
	State string `json:"state"`
	// Description the forge shall show, without the attempt number.
	// +optional
	Description string `json:"description,omitempty"`
	// TargetURL the forge shall link to.
	// +optional
	TargetURL string `json:"targetURL,omitempty"`
	// Progress in percent.
	// +optional
	Progress int `json:"progress,omitempty"`
	// AcceptedState is what the forge last accepted.
	// +optional
	AcceptedState string `json:"acceptedState,omitempty"`
	// AcceptedDescription is the text the forge last accepted.
	// +optional
	AcceptedDescription string `json:"acceptedDescription,omitempty"`
	// AcceptedProgress is the progress the accepted text stood for.
	// +optional
	AcceptedProgress int `json:"acceptedProgress,omitempty"`
	// PostedAt is when the forge accepted it, in seconds since 1970.
	// +optional
	PostedAt int64 `json:"postedAt,omitempty"`
	// ProgressPosts counts the accepted progress posts of this attempt and those before it.
	// +optional
	ProgressPosts int `json:"progressPosts,omitempty"`
	// FailedTries counts the deliveries that failed since the last accepted one.
	// +optional
	FailedTries int `json:"failedTries,omitempty"`
	// NextTry is the earliest time of the next delivery, in seconds since 1970.
	// +optional
	NextTry int64 `json:"nextTry,omitempty"`
	// LastError is why the last delivery failed, in words.
	// +optional
	LastError string `json:"lastError,omitempty"`
	// Stopped says that the forge refused for good.
	// +optional
	Stopped bool `json:"stopped,omitempty"`
	// ClaimedBy is the process that is about to post, or is posting.
	// +optional
	ClaimedBy string `json:"claimedBy,omitempty"`
	// ClaimedAt is when it said so, in seconds since 1970.
	// +optional
	ClaimedAt int64 `json:"claimedAt,omitempty"`
}
