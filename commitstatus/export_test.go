package commitstatus

import (
	"maps"
	"slices"
)

// BitbucketKey is the key of a context.
func BitbucketKey(context string) string { return bitbucketKey(context) }

// Providers lists the kinds of forges.
func Providers() []string { return slices.Sorted(maps.Keys(providers())) }
