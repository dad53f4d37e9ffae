//go:build chromium

package dashboard

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/test/chromium"
)

// Windows that users have: a laptop, and a phone held upright.
const wide, narrow, high = 1200, 360, 900

// serve serves each view at its name, with the files that pages load, as the operator does.
func serve(t *testing.T, views map[string]any) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.FileServerFS(Static()))
	for name, view := range views {
		page := html(t, view)
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) })
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", Policy)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// keep writes a screenshot of the page below bin, and with -update the top of it below docs if a
// document shows it.
func keep(t *testing.T, tab *chromium.Tab, name string) {
	t.Helper()
	write := func(dir string, shot []byte) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("../bin/screenshots", tab.Screenshot(4*high))
	if height, shown := map[string]int{"failed-light": 1150, "fleet-dark": 700, "thousands-light": 1650}[name]; shown && *update {
		write("../docs/images", small(t, tab.Screenshot(height)))
	}
}

// small is a screenshot with its 128 most frequent colours only: a third of the bytes, and as readable.
func small(t *testing.T, shot []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.Color]int{}
	area := full.Bounds()
	for y := range area.Dy() {
		for x := range area.Dx() {
			count[full.At(x, y)]++
		}
	}
	byUse := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	reduced := image.NewPaletted(area, byUse[:min(len(byUse), 128)])
	draw.Draw(reduced, area, full, image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduced); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestChromium_PagesAreAccessible: a screen reader gets the tree in testdata, axe-core finds no
// violation in light and dark colours, nothing is wider than a phone, and without scripts only the
// buttons that copy are missing. go test -tags chromium ./dashboard -update writes the trees and
// the screenshots of the documents.
func TestChromium_PagesAreAccessible(t *testing.T) {
	views := states(t)
	server, browser := serve(t, views), chromium.Start(t)
	for name := range views {
		t.Run(name, func(t *testing.T) {
			tab := browser.Open(t, chromium.View{Width: wide, Height: high, Scheme: "light"})
			tab.Load(server + "/" + name)
			tree := tab.Tree()
			golden(t, filepath.Join("testdata", "trees", name+".txt"), tree)
			judge(t, tab)
			keep(t, tab, name+"-light")

			dark := browser.Open(t, chromium.View{Width: wide, Height: high, Scheme: "dark"})
			dark.Load(server + "/" + name)
			judge(t, dark)
			keep(t, dark, name+"-dark")

			phone := browser.Open(t, chromium.View{Width: narrow, Height: high, Scheme: "light"})
			phone.Load(server + "/" + name)
			var width int
			if phone.Evaluate("document.documentElement.scrollWidth", &width); width > narrow {
				t.Errorf("the page is %d pixels wide on a phone of %d", width, narrow)
			}
			keep(t, phone, name+"-phone")

			plain := browser.Open(t, chromium.View{Width: wide, Height: high, Scheme: "light", NoScript: true})
			plain.Load(server + "/" + name)
			if diff := gocmp.Diff(withoutCopy(tree), plain.Tree()); diff != "" {
				t.Errorf("without scripts -want +got:\n%s", diff)
			}
		})
	}
}

func judge(t *testing.T, tab *chromium.Tab) {
	t.Helper()
	for _, violation := range tab.Violations("..") {
		t.Error(violation)
	}
}

// withoutCopy is a tree without the buttons that the script adds.
func withoutCopy(tree string) string {
	var kept strings.Builder
	for line := range strings.Lines(tree) {
		if !strings.HasPrefix(strings.TrimSpace(line), `button "Copy: `) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// TestChromium_KeyboardReachesEverything: Tab goes to the skip link first, then to every link,
// button and region that scrolls, in the order of the page, and each shows that it has the focus.
func TestChromium_KeyboardReachesEverything(t *testing.T) {
	server := serve(t, map[string]any{"rollout": states(t)["failed"]})
	tab := chromium.Start(t).Open(t, chromium.View{Width: wide, Height: high, Scheme: "light"})
	tab.Load(server + "/rollout")
	var want int
	tab.Evaluate(`document.querySelectorAll("a[href]:not([tabindex='-1']), button, summary, [tabindex='0']").length`, &want)
	var seen int
	for range want {
		tab.Press("Tab")
		var at struct {
			Text    string
			Outline string
			Visited bool
		}
		tab.Evaluate(`(() => { const e = document.activeElement, visited = e.dataset.visited === "yes"; e.dataset.visited = "yes";
			return {Text: e.textContent.trim().slice(0, 40), Outline: getComputedStyle(e).outlineStyle, Visited: visited}; })()`, &at)
		switch {
		case seen == 0 && at.Text != "Skip to the content":
			t.Errorf("the first is %q", at.Text)
		case at.Visited:
			t.Errorf("%q has the focus twice", at.Text)
		case at.Outline != "solid":
			t.Errorf("%q does not show that it has the focus", at.Text)
		}
		seen++
	}
	var left []string
	tab.Evaluate(`[...document.querySelectorAll("a[href]:not([tabindex='-1']), button, summary, [tabindex='0']")].filter(e => e.dataset.visited !== "yes").map(e => e.textContent.trim().slice(0, 40))`, &left)
	if len(left) > 0 || seen == 0 {
		t.Errorf("of %d the keyboard does not reach %q", want, left)
	}
}

// changing serves two versions of a page and opens it. change sends the event that the second is there.
func changing(t *testing.T, first, second string) (tab *chromium.Tab, change func()) {
	t.Helper()
	var changed atomic.Bool
	events := make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.FileServerFS(Static()))
	mux.HandleFunc("GET /events/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for version := range 2 {
			_, _ = fmt.Fprintf(w, "event: version\ndata: %d\n\n", version)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-events:
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", Policy)
		if changed.Load() {
			_, _ = w.Write([]byte(second))
			return
		}
		_, _ = w.Write([]byte(first))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	tab = chromium.Start(t).Open(t, chromium.View{Width: wide, Height: high, Scheme: "light"})
	tab.Load(server.URL + "/page")
	t.Cleanup(func() { close(events) }) // before the server waits for its requests
	return tab, func() {
		changed.Store(true)
		events <- struct{}{}
	}
}

// TestChromium_AnOpenPageFollows: the page is loaded again after an event, the sentence is announced,
// and the focus stays on the element that had it.
func TestChromium_AnOpenPageFollows(t *testing.T) {
	views := states(t)
	tab, change := changing(t, html(t, views["progressing"]), html(t, views["failed"]))
	tab.Evaluate(`document.querySelector("h1").tabIndex = -1; document.querySelector(".crumbs a").focus()`, nil)
	change()
	var now struct{ Announced, Title, Focus string }
	tab.Evaluate(`new Promise(done => {
		const look = () => announce.textContent ? done({Announced: announce.textContent.trim(), Title: document.title, Focus: document.activeElement.textContent}) : requestAnimationFrame(look);
		const announce = document.getElementById("announce");
		look();
	})`, &now)
	if !strings.Contains(now.Announced, "Failed") || !strings.Contains(now.Title, "Failed") || now.Focus != "fleet" {
		t.Errorf("%+v", now)
	}
}

// The journal of a rollout that moves can be read: what the user opened stays open.
func TestChromium_WhatIsOpenStaysOpenWhenThePageChanges(t *testing.T) {
	page := func(decisions int) string {
		s := progressing()
		for range decisions {
			s.Rollout.Status.Journal = append(s.Rollout.Status.Journal, s.Rollout.Status.Journal[0])
		}
		return html(t, NewRollout(frame(""), s))
	}
	for _, opens := range []bool{true, false} {
		tab, change := changing(t, page(20), page(21))
		tab.Evaluate(fmt.Sprintf(`document.querySelector("details").open = %t`, opens), nil)
		change()
		var open bool
		tab.Evaluate(`new Promise(done => {
			const look = () => document.querySelector("summary").textContent === "10 earlier decisions" ? done(document.querySelector("details").open) : requestAnimationFrame(look);
			look();
		})`, &open)
		if open != opens {
			t.Errorf("open is %t, want %t", open, opens)
		}
	}
}

// TestChromium_TenThousandClusters: what is sent for the page is small; the time of the first paint
// is printed.
func TestChromium_TenThousandClusters(t *testing.T) {
	server := serve(t, map[string]any{"thousands": NewRollout(frame(""), thousands())})
	tab := chromium.Start(t).Open(t, chromium.View{Width: wide, Height: high, Scheme: "light"})
	tab.Load(server + "/thousands")
	var sent int
	tab.Evaluate(`performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource")).reduce((sum, e) => sum + e.transferSize, 0)`, &sent)
	if sent == 0 || sent > 150<<10 {
		t.Errorf("%d bytes are sent", sent)
	}
	var paint float64
	tab.Evaluate(`new Promise(done => {
		const painted = () => { const [e] = performance.getEntriesByName("first-contentful-paint"); e ? done(e.startTime) : requestAnimationFrame(painted); };
		painted();
	})`, &paint)
	t.Logf("%d bytes are sent, first paint after %.0f ms", sent, paint)
}
