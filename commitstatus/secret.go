package commitstatus

import "github.com/addonflow/addonflow/api/secret"

// Secret is a credential, which shows in nothing that is printed.
type Secret = secret.Text
