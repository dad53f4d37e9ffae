package commitstatus

// BitbucketKey is the key of a context.
func BitbucketKey(context string) string { return bitbucketKey(context) }
