package gitsource

import "github.com/addonflow/addonflow/api/secret"

// Secret is a credential that is never printed.
type Secret = secret.Text

// redacted replaces text that may hold a credential.
const redacted = secret.Redacted
