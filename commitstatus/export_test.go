package commitstatus

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// BitbucketKey is the key of a context.
func BitbucketKey(context string) string { return bitbucketKey(context) }

// Header returns the name of the header in which a kind of forge gets a token, and what of its value must not be shown.
func Header(kind, token string) (field, credentials string) {
	p := providers()[kind]
	sent := p.authorize(token)
	return cmp.Or(p.header, "Authorization"), sent[strings.LastIndex(sent, " ")+1:]
}

// Providers lists the kinds of forges.
func Providers() []string { return slices.Sorted(maps.Keys(providers())) }
