package commitstatus

import "github.com/addonflow/addonflow/api/secret"

// Secret is a credential that is never printed.
type Secret = secret.Text
