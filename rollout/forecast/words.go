package forecast

import (
	"fmt"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/brief"
)

// shownStages is how many stages a text names.
const shownStages = 6

// Text is "canary 1 cluster, soak 10m; everyone 99 clusters, 10 at a time; about 32m if every
// cluster takes 2m". It has no time if the rollout does not end, or moves no cluster.
func (f Forecast) Text() string {
	var parts []string
	for i, st := range f.Stages {
		if i == shownStages && len(f.Stages) > shownStages+1 {
			parts = append(parts, fmt.Sprintf("and %d more stages", len(f.Stages)-i))
			break
		}
		parts = append(parts, st.text())
	}
	if f.Unstaged > 0 {
		parts = append(parts, counted(f.Unstaged)+" in no stage")
	}
	if len(f.Findings) == 0 && f.Duration > 0 {
		text := fmt.Sprintf("about %s if every cluster takes %s", shown(f.Duration), shown(f.PerCluster))
		if f.Windowed {
			text += " and it begins now"
		}
		if f.Untimed {
			text += ", and the waits for gates"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// text is "everyone 99 clusters, 10 at a time, soak 5m".
func (s Stage) text() string {
	text := s.Name + " " + counted(s.Clusters)
	switch {
	case s.AtOnce == 0:
	case s.AtOnce < s.Clusters:
		text += fmt.Sprintf(", %d at a time", s.AtOnce)
	case s.Clusters > 1:
		text += " at once"
	}
	text = strings.Join(append([]string{text}, s.Waits...), ", ")
	if s.Soak > 0 {
		text += ", soak " + shown(s.Soak)
	}
	return text
}

func counted(n int) string {
	if n == 0 {
		return "no cluster"
	}
	return brief.Count(n, "cluster")
}

// shown is a duration as people write it: 10m, 1h50m, 3d4h. Hours have no seconds, and days no
// minutes.
func shown(d time.Duration) string {
	switch {
	case d >= 24*time.Hour:
		d = d.Round(time.Hour)
	case d >= time.Hour:
		d = d.Round(time.Minute)
	case d >= time.Second:
		d = d.Round(time.Second)
	}
	text := ""
	if days := d / (24 * time.Hour); days > 0 {
		text, d = fmt.Sprintf("%dd", days), d%(24*time.Hour)
	}
	if d == 0 && text != "" {
		return text
	}
	return text + brief.Duration(d)
}
