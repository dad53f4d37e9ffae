package rollout_test

// stories are what the transcripts in testdata tell, in a sentence or two. Unless a story
// says otherwise a fleet runs v1, with a canary of cluster-01 and 02, one at a time, ten
// minutes of soak and a deadline of 30; then everyone else, a quarter at a time.
func stories() map[string]string {
	return map[string]string{
		"all-with-a-failure":                  "Strategy All moves everybody at once. A silent cluster fails at its deadline, one that is away is caught up on return, and the next commit is everybody's next chance.",
		"canary-fails-and-revert":             "Both canaries fail, so that nobody else gets v2. A revert moves back only who got it, and soaks nowhere.",
		"canary-then-everyone":                "The rollout as it should be: one canary, its soak, the other, and then the rest in waves.",
		"deadline-and-recovery":               "A canary that is late is a failure at its deadline, and none any more once it is verified.",
		"first-install":                       "There is nothing to go back to yet: everybody gets the add-on at once, and its content at the stages' pace.",
		"flapping-health-restarts-the-soak":   "A canary that loses its health while it soaks starts its soak over.",
		"group-by-group":                      "ProgressivePerGroup works the decision groups in order of their index, gaps or not; a hand-made one in no group comes last.",
		"joiner-and-leaver":                   "A joiner starts at v1, for which a slot is all it waits for, and is moved to v2 with the rest. A leaver waits out its grace period.",
		"lost-in-its-soak":                    "A canary is lost while it soaks, for longer than its soak has left. It keeps its slot and soaks anew from its return: nobody saw it meanwhile.",
		"lost-parked-returned":                "A canary is lost after it got v2. It keeps its slot until its deadline, is parked then, which is no failure, and in flight again when it returns.",
		"new-commit-supersedes":               "v3 comes while v2 is stuck on a canary: whoever is in flight moves on first, in the slot it has, with clocks that start anew.",
		"per-placement-in-parallel":           "Each install placement has its own pace, and the two go side by side; the later one has the cluster that both select.",
		"placement-deleted-and-restored":      "A placement that is gone removes nobody and holds its stage, for however long. When it is back the rollout goes on.",
		"placement-flaps":                     "A cluster that comes back within its grace period has a new one each time: flapping removes nobody.",
		"placement-shrinks":                   "Five of 40 leave: after the grace period two in five minutes, which is the budget.",
		"progressive-with-a-mandatory-group":  "A mandatory group goes first, at once and without a failure; the rest go two at a time, and one silent cluster is within their budget.",
		"removed-from-git":                    "An add-on that leaves Git stays until that is approved, leaves at the budget's pace, or at once by annotation; a hand-made one stays until its owner deletes it.",
		"revert-with-a-canary-lost-in-flight": "A canary is lost while it soaks, and the commit is reverted: the other canary turns back in the slot that the lost one has no longer.",
		"revert-from-behind-a-lost-canary":    "v2 is taken back while the canary that had verified it is away: nobody waits for it, and who is in flight to v2 turns round at once.",
		"share-held-by-strategy":              "RollingUpdateWithPlacement moves its share of 12 of 40 and holds the rest. v1 stays the stable revision, and going back to it asks for no share.",
		"stage-held-at-zero":                  "maxConcurrency 0 holds a stage until somebody says otherwise.",
		"status-lost":                         "An emptied status is rebuilt from what runs: who differs from the stable revision is in flight from now, and soaks again.",
		"suspended-in-the-middle":             "Suspending admits nobody further, what is in flight gets to its end, and resuming repeats nothing.",
		"unchanged-clusters-take-no-part":     "Clusters for which v2 renders what they have count as updated, and cost nothing.",
		"unknown-mandatory-group":             "A typo in the name of a mandatory group would skip a canary: everybody is held.",
	}
}
