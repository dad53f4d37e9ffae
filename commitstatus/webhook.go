package commitstatus

import "github.com/addonflow/addonflow/api/v1alpha1"

// Webhook is how a kind of forge proves that it sent a webhook. One of Signed, Token and Password is set.
type Webhook struct {
	// Signed are headers. One of them must be the HMAC-SHA256 of the body in hex, after its prefix.
	Signed []SignedHeader
	// Token is the header whose value is the token.
	Token string
	// Password: the token is the password of basic authentication.
	Password bool
	// Form is what the form of the forge asks for, besides the URL, in its words.
	Form []FormEntry
}

// SignedHeader is a header that contains a signature.
type SignedHeader struct {
	Name, Prefix string
}

// FormEntry is a field of a form and its value, in which WebhookToken stands for the token.
type FormEntry struct {
	Field, Value string
}

const (
	// WebhookToken stands for the token.
	WebhookToken = "TOKEN"
	// formPlace is the field that says where the form is.
	formPlace = "Where"
	// sha256Prefix begins a signature that names its hash.
	sha256Prefix = "sha256="
)

// Webhooks are the kinds of webhooks, by spec.webhook.type: those of the forges, and a generic one.
func Webhooks() map[string]Webhook {
	all := map[string]Webhook{v1alpha1.WebhookGeneric: {
		Signed: []SignedHeader{{"X-Signature", sha256Prefix}},
		Form:   []FormEntry{{"Method", "POST"}, {"Header", "X-Signature: sha256=<HMAC-SHA256 of the body in hex>, keyed with " + WebhookToken}},
	}}
	for kind, p := range providers() {
		if p.webhook != nil {
			all[kind] = *p.webhook
		}
	}
	return all
}
