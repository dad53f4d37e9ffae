package commitstatus

// Report is the durable memory of one attempt to tell a forge about one context of
// one commit. A list of them is the ledger: the caller keeps it in the status of a
// Kubernetes object, changes it only with the functions of this package, and writes
// it back. It survives restarts, so nothing is lost and nothing is said twice.
//
// (SHA, Context, Attempt) is the key. Within one attempt the state goes
//
//	pending (any number of texts) -> success | failure | error
//
// and stays there: a terminal state and its text are final. A context that has to
// say something else after a terminal state does so under the next attempt number,
// as a Report of its own, and only once the earlier attempt's terminal state has
// reached the forge. So a commit that was once red turns green only as
// "... (attempt 2)", and a verdict reached while the forge was down is not lost.
//
// The fields are JSON-tagged to be embedded in a CRD as they are.
type Report struct {
	// SHA is the full object name of the commit.
	SHA string `json:"sha"`
	// Context names what is judged, for instance addonflow/hello/canary.
	Context string `json:"context"`
	// Attempt counts from 1. From 2 on it is shown at the end of the description.
	Attempt int `json:"attempt"`

	// State is what the forge shall say.
	State State `json:"state"`
	// Description is the text the forge shall show, without the attempt number.
	Description string `json:"description,omitempty"`
	// TargetURL is the link the forge shall show. A change of the link alone is
	// not posted.
	TargetURL string `json:"targetURL,omitempty"`
	// Progress is how far the context is, in percent; progress posts are paced by it.
	Progress int `json:"progress,omitempty"`

	// AcceptedState is what the forge last accepted in this attempt; empty: nothing yet.
	AcceptedState State `json:"acceptedState,omitempty"`
	// AcceptedDescription is the text the forge last accepted, word for word.
	AcceptedDescription string `json:"acceptedDescription,omitempty"`
	// AcceptedProgress is the progress the accepted text stood for.
	AcceptedProgress int `json:"acceptedProgress,omitempty"`
	// PostedAt is when the forge last accepted something about the context, in this or
	// the attempt before, in seconds since 1970.
	PostedAt int64 `json:"postedAt,omitempty"`
	// ProgressPosts counts the accepted progress posts of this attempt and those before
	// it: pending after whatever else was told. Terminal states do not count.
	ProgressPosts int `json:"progressPosts,omitempty"`

	// FailedTries counts the deliveries that failed since the last accepted one.
	FailedTries int `json:"failedTries,omitempty"`
	// NextTry is the earliest time of the next delivery, in seconds since 1970.
	NextTry int64 `json:"nextTry,omitempty"`
	// LastError is why the last delivery failed, in words; empty after a success.
	LastError string `json:"lastError,omitempty"`
	// Stopped says that the forge refused for good: nothing is tried again until
	// the state changes or Retry is called.
	Stopped bool `json:"stopped,omitempty"`

	// ClaimedBy is the process that is about to post, or is posting; empty: none. See Claim.
	ClaimedBy string `json:"claimedBy,omitempty"`
	// ClaimedAt is when it said so, in seconds since 1970; 0 as long as no process tried to
	// post what the forge has not accepted yet.
	ClaimedAt int64 `json:"claimedAt,omitempty"`
}

// Status returns what is to be posted for the report: its wish, with the attempt
// number at the end of the text from the second attempt on.
func (r Report) Status() Status {
	return Status{
		SHA:         r.SHA,
		Context:     r.Context,
		State:       r.State,
		Description: withAttempt(r.Description, r.Attempt),
		TargetURL:   r.TargetURL,
	}
}

// Done tells whether the attempt's terminal state has reached the forge. Nothing is
// posted for the report any more.
func (r Report) Done() bool {
	return r.AcceptedState.Terminal()
}

// Undelivered tells whether the forge does not yet show what the report says it
// shall. A report may be undelivered and not Due: progress is paced.
func (r Report) Undelivered() bool {
	if r.Done() {
		return false
	}
	return r.State != r.AcceptedState || r.Status().Description != r.AcceptedDescription
}

// Reopens tells whether the report says that the context is open again after a verdict,
// which the forge has not heard yet. That is paced like progress, and nothing is told at
// all if the context closes again in the words of before.
func (r Report) Reopens() bool {
	return r.State == Pending && r.AcceptedState == "" && r.Attempt > 1
}

// reopensUntold tells whether it reopens and no process tried to say so yet: then what the
// forge shows is still the verdict before.
func (r Report) reopensUntold() bool { return r.Reopens() && r.ClaimedAt == 0 }

// progress tells whether posting the report would be a post about progress.
func (r Report) progress() bool {
	return r.State == Pending && r.AcceptedState == Pending || r.Reopens()
}

// follow takes over from what was told before how often progress was told, and when
// anything was told last.
func (r *Report) follow(postedAt int64, progressPosts int) {
	if r.AcceptedState == "" {
		r.PostedAt, r.ProgressPosts = max(r.PostedAt, postedAt), max(r.ProgressPosts, progressPosts)
	}
}

// sameContext tells whether both are about the same context of the same commit.
func (r Report) sameContext(sha, context string) bool {
	return r.SHA == sha && r.Context == context
}
