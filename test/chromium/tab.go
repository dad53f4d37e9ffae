package chromium

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Tab is a page of the browser. Its methods fail the test if the browser refuses.
type Tab struct {
	tb      testing.TB
	browser *Browser
	session string
	loaded  chan struct{}
}

// View is how a user looks at a page.
type View struct {
	// Width and Height of the window in pixels.
	Width, Height int
	// Scheme is the colour scheme that the user prefers, "light" or "dark".
	Scheme string
	// NoScript: the user's browser runs no script of pages. Evaluate works nevertheless.
	NoScript bool
}

// Open opens a tab, for the test tb, that stays open until the test ends.
func (b *Browser) Open(tb testing.TB, v View) *Tab {
	tb.Helper()
	t := &Tab{tb: tb, browser: b}
	var target struct {
		TargetID string `json:"targetId"`
	}
	t.callAt("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	t.callAt("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	t.session, t.loaded = attached.SessionID, make(chan struct{}, 1)
	b.mu.Lock()
	b.loaded[t.session] = t.loaded
	b.mu.Unlock()
	t.call("Page.enable", nil, nil)
	t.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": v.Width, "height": v.Height, "deviceScaleFactor": 1, "mobile": false}, nil)
	t.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": v.Scheme}}}, nil)
	t.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": v.NoScript}, nil)
	tb.Cleanup(func() {
		_ = b.call(b.tb.Context(), "", "Target.closeTarget", map[string]any{"targetId": target.TargetID}, nil) // the browser may be gone
	})
	return t
}

func (t *Tab) call(method string, params, out any) {
	t.tb.Helper()
	t.callAt(t.session, method, params, out)
}

func (t *Tab) callAt(session, method string, params, out any) {
	t.tb.Helper()
	if err := t.browser.call(t.tb.Context(), session, method, params, out); err != nil {
		t.tb.Fatal(err)
	}
}

// Load loads an address and waits until the page is complete.
func (t *Tab) Load(address string) {
	t.tb.Helper()
	var loaded struct {
		ErrorText string `json:"errorText"`
	}
	select {
	case <-t.loaded: // of the page before
	default:
	}
	t.call("Page.navigate", map[string]any{"url": address}, &loaded)
	if loaded.ErrorText != "" {
		t.tb.Fatalf("cannot load %s: %s", address, loaded.ErrorText)
	}
	select {
	case <-t.loaded:
	case <-t.tb.Context().Done():
		t.tb.Fatalf("%s does not get complete", address)
	}
}

// Evaluate runs an expression in the page, waits for it if it is a promise, and decodes its JSON
// value into out, unless out is nil.
func (t *Tab) Evaluate(expression string, out any) {
	t.tb.Helper()
	var evaluated struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	t.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": out != nil}, &evaluated)
	if e := evaluated.Exception; e != nil {
		t.tb.Fatalf("%s %s", e.Text, e.Exception.Description)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(evaluated.Result.Value, out); err != nil {
		t.tb.Fatalf("%s: %v", evaluated.Result.Value, err)
	}
}

// Press presses a key by its name, such as Tab or Enter.
func (t *Tab) Press(key string) {
	t.tb.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13}
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
		if key == "Enter" && kind == "keyDown" {
			params["text"] = "\r"
		}
		t.call("Input.dispatchKeyEvent", params, nil)
	}
}

// Screenshot returns the whole page as PNG; height bounds it, 0: not.
func (t *Tab) Screenshot(height int) []byte {
	t.tb.Helper()
	var metrics struct {
		Size struct{ Width, Height float64 } `json:"cssContentSize"`
	}
	t.call("Page.getLayoutMetrics", nil, &metrics)
	high := metrics.Size.Height
	if height > 0 {
		high = min(high, float64(height))
	}
	var shot struct {
		Data []byte `json:"data"`
	}
	t.call("Page.captureScreenshot", map[string]any{
		"format": "png", "captureBeyondViewport": true,
		"clip": map[string]any{"x": 0, "y": 0, "width": metrics.Size.Width, "height": high, "scale": 1},
	}, &shot)
	return shot.Data
}

// node is one of the accessibility tree.
type node struct {
	ID         string     `json:"nodeId"`
	Ignored    bool       `json:"ignored"`
	Role       value      `json:"role"`
	Name       value      `json:"name"`
	Value      value      `json:"value"`
	Properties []property `json:"properties"`
	Children   []string   `json:"childIds"`
}

type value struct {
	Value any `json:"value"`
}

type property struct {
	Name  string `json:"name"`
	Value value  `json:"value"`
}

func (v value) String() string {
	if v.Value == nil {
		return ""
	}
	return fmt.Sprint(v.Value)
}

// Tree returns the accessibility tree as text, one node a line, indented by its depth: role, name,
// and the level of a heading or the value of a bar.
func (t *Tab) Tree() string {
	t.tb.Helper()
	var full struct {
		Nodes []node `json:"nodes"`
	}
	t.call("Accessibility.getFullAXTree", nil, &full)
	nodes := make(map[string]node, len(full.Nodes))
	for _, n := range full.Nodes {
		nodes[n.ID] = n
	}
	var text strings.Builder
	if len(full.Nodes) > 0 {
		printed(&text, nodes, full.Nodes[0], "")
	}
	return text.String()
}

// printed writes a node and those below it. Nodes that only group others are omitted, and so are
// texts that repeat the name of their parent.
func printed(w *strings.Builder, nodes map[string]node, n node, indent string) {
	role, name := n.Role.String(), strings.Join(strings.Fields(n.Name.String()), " ")
	shown := !n.Ignored && role != "none" && role != "generic" && role != "InlineTextBox" && role != "LineBreak" && (role != "StaticText" || name != "")
	if shown {
		w.WriteString(indent + role)
		if name != "" {
			fmt.Fprintf(w, " %q", name)
		}
		for _, p := range n.Properties {
			if p.Name == "level" && role == "heading" {
				fmt.Fprintf(w, " level=%v", p.Value)
			}
		}
		if v := n.Value.String(); v != "" {
			w.WriteString(" value=" + v)
		}
		w.WriteString("\n")
		indent += "  "
	}
	if role == "button" {
		return // its name is all that a reader gets
	}
	for _, id := range n.Children {
		child, ok := nodes[id]
		if ok && (!shown || child.Role.String() != "StaticText" || strings.Join(strings.Fields(child.Name.String()), " ") != name) {
			printed(w, nodes, child, indent)
		}
	}
}
