package dashboard

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strings"
	"unicode"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static
var static embed.FS

// Static are the files that every page loads: style, script and icon.
func Static() fs.FS { return static }

// Policy is the Content-Security-Policy of the pages. It permits only the parts of the pages: no inline script or
// style, no frame, no other site.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'self'; frame-ancestors 'none'"

// Pages write views as HTML.
type Pages struct{ set *template.Template }

// NewPages reads the templates.
func NewPages() (*Pages, error) {
	set, err := template.ParseFS(templates, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("cannot read the templates of pages: %w", err)
	}
	return &Pages{set}, nil
}

// Login is the page with the form for a token.
type Login struct {
	Frame
	// To is the page to show after the login.
	To string
	// Refused says why a token was refused; "": none was given yet.
	Refused string
}

// Message is a page with one message.
type Message struct {
	Frame
	Text string
	To   Link
}

// Write writes a view.
func (p *Pages) Write(w io.Writer, view any) error {
	name := ""
	switch view.(type) {
	case Rollout:
		name = "rollout"
	case Fleet:
		name = "fleet"
	case Source:
		name = "source"
	case Cluster:
		name = "cluster"
	case Clusters:
		name = "clusters"
	case Login:
		name = "login"
	case Message:
		name = "message"
	default:
		return fmt.Errorf("cannot write a page of %T", view)
	}
	var page strings.Builder
	err := p.set.ExecuteTemplate(&page, name, view)
	if err == nil {
		_, err = io.WriteString(w, inOrder(page.String()))
	}
	if err != nil {
		return fmt.Errorf("cannot write page %s: %w", name, err)
	}
	return nil
}

// inOrder returns text with an escape for each character that changes the order in which text is shown. Otherwise
// text from Git could reverse the text beside it.
func inOrder(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.Is(unicode.Bidi_Control, r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
