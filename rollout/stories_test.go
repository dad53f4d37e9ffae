package rollout_test

// stories are what the transcripts in testdata tell, in a sentence or two. Unless a story
// says otherwise a fleet runs v1, with a canary of cluster-01 and 02, one at a time, ten
// minutes of soak and a deadline of 30; then everyone else, a quarter at a time.
func stories() map[string]string {
	return map[string]string{
		"all-with-a-failure":                      "Strategy All moves all clusters at once. A silent cluster fails at its deadline, an unavailable one is moved on its return, and the next commit starts again with all of them.",
		"canary-fails-and-revert":                 "Both canaries fail, so that no other cluster gets v2. A revert moves back only the clusters that got v2, without a soak.",
		"canary-then-everyone":                    "The normal rollout: one canary and its soak, the other canary, then the rest in waves.",
		"deadline-and-recovery":                   "A canary that is late is a failure at its deadline, until it is verified and soaked.",
		"edited-on-the-hub-during-a-revert":       "A hub configuration of two clusters is edited during a revert. Each cluster gets the edit once, with v1, in a slot of the revert.",
		"first-install":                           "There is no stable revision yet: all clusters get the add-on at once, and its content at the pace of the stages.",
		"flapping-health-restarts-the-soak":       "A canary that loses its health while it soaks starts its soak again.",
		"group-by-group":                          "ProgressivePerGroup takes the decision groups in order of their index, also with gaps; a hand-made cluster in no group comes last.",
		"held-by-its-managedcluster":              "A ManagedCluster holds its cluster: the other canary proves v2, and the cluster is moved when the hold is over. Another hold waits in a revert, which names the cluster.",
		"joiner-and-leaver":                       "A joiner starts at v1, waits only for a slot, and is moved to v2 with the rest. A leaver waits for the end of its grace period.",
		"lost-in-its-soak":                        "A canary is lost while it soaks, for longer than the rest of its soak. It keeps its slot and soaks again from its return, because it was not observed meanwhile.",
		"lost-parked-returned":                    "A canary is lost after it got v2. It keeps its slot for its deadline and is then parked, which is not a failure. On its return it is in flight again.",
		"new-commit-supersedes":                   "v3 comes while v2 is stuck on a canary: the cluster in flight is retargeted first, in its slot, with new clocks.",
		"per-placement-in-parallel":               "Each install placement has its own pace, and both run in parallel; a cluster that both select belongs to the later one.",
		"placement-deleted-and-restored":          "A placement that is gone removes no cluster and holds its stage. When it is back, the rollout continues.",
		"placement-flaps":                         "A cluster that comes back within its grace period gets a new one each time: flapping removes no cluster.",
		"placement-shrinks":                       "Five of 40 leave: after the grace period two in five minutes, which is the budget.",
		"progressive-with-a-mandatory-group":      "A mandatory group goes first, at once and without a failure; the rest go two at a time, and one silent cluster is within their budget.",
		"removed-from-git":                        "An add-on that leaves Git stays until that is approved, leaves at the budget's pace, or at once by annotation; a hand-made one stays until its owner deletes it.",
		"revert-with-a-canary-lost-in-flight":     "A canary is lost while it soaks, and the commit is reverted: the other canary is moved back in the slot that the lost one no longer holds.",
		"rollback-of-a-failure-behind-the-canary": "v2 fails on two clusters behind the canary. A rollback moves them at once, two at a time as their stage says, although the canary does not verify v1.",
		"revert-from-behind-a-lost-canary":        "v2 is reverted while the canary that had verified it is away: the revert does not wait for it, and clusters in flight to v2 are retargeted at once.",
		"share-held-by-strategy":                  "RollingUpdateWithPlacement moves its share of 12 of 40 and holds the rest. v1 stays the stable revision, and going back to it asks for no share.",
		"stage-held-at-zero":                      "maxConcurrency 0 holds a stage until the user raises it.",
		"status-lost":                             "An emptied status is rebuilt from the works: a cluster that differs from the stable revision is in flight from now, and soaks again.",
		"suspended-in-the-middle":                 "Suspending admits no further cluster, clusters in flight finish, and resuming repeats nothing.",
		"unchanged-clusters-take-no-part":         "Clusters for which v2 renders what they have count as updated, and cost nothing.",
		"canary-placement-empties-in-the-soak":    "A stage that becomes empty holds the others until a cluster that was admitted in it has soaked for its whole soak.",
		"canaries-leave-in-the-soak":              "Canaries that leave in the soak prove nothing, although their stage is empty.",
		"unknown-mandatory-group-in-the-soak":     "No soak ends while the pace cannot work, and a cluster that becomes unhealthy meanwhile soaks again.",
		"unknown-mandatory-group":                 "A typo in the name of a mandatory group would skip a canary: every cluster is held.",
		"gate-approval-between-canary-and-fleet":  "Two people approve the content after the canary; the second approval starts the fleet.",
		"gate-rejected-and-reverted":              "One person rejects the content after the canary. The rollout halts, and the revert passes the gate by.",
		"gate-window-closes-between-admissions":   "A window closes while a cluster is in flight: it continues, and the others wait for the next opening.",
		"gate-measures-the-canary":                "A gate measures the canary. That it passed in the soak is not enough: the next stage starts after it passed later.",
		"gate-finds-the-canary-bad":               "A gate that measures the canary fails in the soak. The rollout halts, and the revert reaches the canary alone.",
		"gate-cannot-be-measured":                 "The server of a gate is down for longer than ten minutes. The stage pauses, does not fail, and continues by itself.",
	}
}
