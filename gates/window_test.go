package gates_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
)

// at reads a time in a zone.
func at(t *testing.T, zone, text string) time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	when, err := time.ParseInLocation("2006-01-02 15:04", text, location)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func weekdays(hours string, days ...string) v1alpha1.TimeRange {
	return v1alpha1.TimeRange{Weekdays: days, Hours: hours}
}

func cron(expression string, duration time.Duration) v1alpha1.TimeRange {
	return v1alpha1.TimeRange{Cron: expression, Duration: &metav1.Duration{Duration: duration}}
}

const (
	day      = 24 * time.Hour
	berlin   = "Europe/Berlin"
	newYork  = "America/New_York"
	lordHowe = "Australia/Lord_Howe"
)

func TestWindow(t *testing.T) {
	workdays := []v1alpha1.TimeRange{weekdays("09:00-17:00", "Mon", "Tue", "Wed", "Thu", "Fri")}
	type ranges = []v1alpha1.TimeRange
	// Clocks in Berlin go from 02:00 to 03:00 on 2026-03-29, and from 03:00 to 02:00 on 2026-10-25; in
	// New York from 02:00 to 03:00 on 2026-03-08, and from 02:00 to 01:00 on 2026-11-01; on Lord Howe
	// from 02:00 to 02:30 on 2026-10-04, and from 02:00 to 01:30 on 2026-04-05.
	for name, c := range map[string]struct {
		zone           string
		allow, exclude ranges
		now            string
		state          v1alpha1.GateState
		reason         string
		// changes is in UTC, as the zone's own clocks may show it twice.
		changes string
	}{
		"OpensOnMonday":         {berlin, workdays, nil, "2026-11-21 12:00", "Waiting", "opens Mon 09:00 CET", "2026-11-23 08:00"},
		"OpensAtItsMinute":      {berlin, workdays, nil, "2026-11-23 09:00", "Passed", "open until Mon 17:00 CET", "2026-11-23 16:00"},
		"ClosesAtItsMinute":     {berlin, workdays, nil, "2026-11-23 17:00", "Waiting", "opens Tue 09:00 CET", "2026-11-24 08:00"},
		"DateIfNotThisWeek":     {berlin, ranges{cron("0 9 1 * *", time.Hour)}, nil, "2026-11-02 09:00", "Waiting", "opens Tue 1 Dec 2026 09:00 CET", "2026-12-01 08:00"},
		"OverMidnight":          {berlin, ranges{weekdays("22:00-06:00", "Fri")}, nil, "2026-11-21 05:59", "Passed", "open until Sat 06:00 CET", "2026-11-21 05:00"},
		"OverMidnightOneDay":    {berlin, ranges{weekdays("22:00-06:00", "Fri")}, nil, "2026-11-20 05:59", "Waiting", "opens Fri 22:00 CET", "2026-11-20 21:00"},
		"WholeDays":             {berlin, ranges{weekdays("", "Sat", "Sun")}, nil, "2026-11-20 12:00", "Waiting", "opens Sat 00:00 CET", "2026-11-20 23:00"},
		"WholeDaysTouch":        {berlin, ranges{weekdays("", "Sat", "Sun")}, nil, "2026-11-21 12:00", "Passed", "open until Mon 00:00 CET", "2026-11-22 23:00"},
		"Until24":               {berlin, ranges{weekdays("20:00-24:00", "Fri"), weekdays("00:00-04:00", "Sat")}, nil, "2026-11-20 21:00", "Passed", "open until Sat 04:00 CET", "2026-11-21 03:00"},
		"SameHourIsADay":        {berlin, ranges{weekdays("09:00-09:00", "Fri")}, nil, "2026-11-21 08:00", "Passed", "open until Sat 09:00 CET", "2026-11-21 08:00"},
		"ExcludeBeatsAllow":     {berlin, workdays, ranges{cron("0 12 * * *", time.Hour)}, "2026-11-23 12:30", "Waiting", "opens Mon 13:00 CET", "2026-11-23 12:00"},
		"ClosesWithExclude":     {berlin, workdays, ranges{cron("0 12 * * *", time.Hour)}, "2026-11-23 10:00", "Passed", "open until Mon 12:00 CET", "2026-11-23 11:00"},
		"ExcludeOverAnOpening":  {berlin, workdays, ranges{cron("0 0 23 11 *", 48*time.Hour)}, "2026-11-22 10:00", "Waiting", "opens Wed 09:00 CET", "2026-11-25 08:00"},
		"NoAllowIsOpen":         {berlin, nil, ranges{weekdays("", "Fri")}, "2026-11-19 10:00", "Passed", "open until Fri 00:00 CET", "2026-11-19 23:00"},
		"NoAllowCloses":         {berlin, nil, ranges{weekdays("", "Fri")}, "2026-11-20 10:00", "Waiting", "opens Sat 00:00 CET", "2026-11-20 23:00"},
		"AlwaysOpen":            {berlin, ranges{weekdays("")}, nil, "2026-11-20 10:00", "Passed", "open", ""},
		"NeverOpen":             {berlin, ranges{cron("0 0 30 2 *", time.Hour)}, nil, "2026-11-20 10:00", "Waiting", "does not open within a year", ""},
		"AllExcluded":           {berlin, workdays, ranges{weekdays("")}, "2026-11-20 10:00", "Waiting", "does not open within a year", ""},
		"CronLongerThanADay":    {berlin, ranges{cron("0 18 * * FRI", 60*time.Hour)}, nil, "2026-11-22 12:00", "Passed", "open until Mon 06:00 CET", "2026-11-23 05:00"},
		"CronOverlapsItself":    {berlin, ranges{cron("0 * * * *", 90*time.Minute)}, nil, "2026-11-22 12:50", "Passed", "open", ""},
		"DayOfMonthOrWeekday":   {berlin, ranges{cron("0 9 1 * MON", time.Hour)}, nil, "2026-12-01 09:30", "Passed", "open until Tue 10:00 CET", "2026-12-01 09:00"},
		"SecondsOfADuration":    {berlin, ranges{cron("0 9 * * *", 90*time.Second)}, nil, "2026-12-01 09:01", "Passed", "open until Tue 09:01 CET", "2026-12-01 08:01:30"},
		"UTC":                   {"UTC", workdays, nil, "2026-11-22 12:00", "Waiting", "opens Mon 09:00 UTC", "2026-11-23 09:00"},
		"ForwardKeepsTheClock":  {berlin, workdays, nil, "2026-03-28 12:00", "Waiting", "opens Mon 09:00 CEST", "2026-03-30 07:00"},
		"BackKeepsTheClock":     {newYork, workdays, nil, "2026-10-31 12:00", "Waiting", "opens Mon 09:00 EST", "2026-11-02 14:00"},
		"ForwardSkipsHours":     {berlin, ranges{weekdays("02:00-03:00")}, nil, "2026-03-28 12:00", "Waiting", "opens Mon 02:00 CEST", "2026-03-30 00:00"},
		"ForwardShortensHours":  {berlin, ranges{weekdays("01:30-03:30")}, nil, "2026-03-29 01:45", "Passed", "open until Sun 03:30 CEST", "2026-03-29 01:30"},
		"ForwardDelaysHours":    {newYork, ranges{weekdays("02:30-04:00")}, nil, "2026-03-08 01:00", "Waiting", "opens Sun 03:00 EDT", "2026-03-08 07:00"},
		"ForwardDelaysCron":     {berlin, ranges{cron("30 2 * * *", time.Hour)}, nil, "2026-03-29 01:00", "Waiting", "opens Sun 03:00 CEST", "2026-03-29 01:00"},
		"DelayedCronIsWhole":    {berlin, nil, ranges{cron("30 2 * * SUN", 24*time.Hour)}, "2026-03-29 12:00", "Waiting", "opens Mon 03:00 CEST", "2026-03-30 01:00"},
		"BackRepeatsHours":      {newYork, ranges{weekdays("01:00-02:00")}, nil, "2026-11-01 00:30", "Waiting", "opens Sun 01:00 EDT", "2026-11-01 05:00"},
		"BackDoublesHours":      {newYork, ranges{weekdays("01:00-02:00")}, nil, "2026-11-01 01:30", "Passed", "open until Sun 02:00 EST", "2026-11-01 07:00"},
		"BackClosesBetween":     {newYork, ranges{weekdays("01:00-01:45")}, nil, "2026-11-01 01:30", "Passed", "open until Sun 01:45 EDT", "2026-11-01 05:45"},
		"BackRepeatsCron":       {berlin, ranges{cron("30 2 * * *", 20*time.Minute)}, nil, "2026-10-25 01:00", "Waiting", "opens Sun 02:30 CEST", "2026-10-25 00:30"},
		"ADurationIsReal":       {berlin, ranges{cron("0 22 24 10 *", 6*time.Hour)}, nil, "2026-10-24 23:00", "Passed", "open until Sun 03:00 CET", "2026-10-25 02:00"},
		"HalfAnHourForward":     {lordHowe, ranges{weekdays("02:15-04:00")}, nil, "2026-10-04 01:00", "Waiting", "opens Sun 02:30 +11", "2026-10-03 15:30"},
		"HalfAnHourForwardCron": {lordHowe, ranges{cron("15 2 * * *", time.Hour)}, nil, "2026-10-04 01:00", "Waiting", "opens Sun 02:30 +11", "2026-10-03 15:30"},
		"HalfAnHourBack":        {lordHowe, ranges{weekdays("01:30-02:00")}, nil, "2026-04-05 01:20", "Waiting", "opens Sun 01:30 +11", "2026-04-04 14:30"},
		"HalfAnHourBackDoubles": {lordHowe, ranges{cron("45 1 * * *", 15*time.Minute)}, nil, "2026-04-05 01:20", "Waiting", "opens Sun 01:45 +11", "2026-04-04 14:45"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.WindowGate{TimeZone: c.zone, Allow: c.allow, Exclude: c.exclude}
			verdict, next := gates.Window(spec, at(t, c.zone, c.now))
			if verdict != (gates.Verdict{State: c.state, Reason: c.reason}) {
				t.Errorf("got %s, %q", verdict.State, verdict.Reason)
			}
			changes := ""
			if !next.IsZero() {
				changes = strings.TrimSuffix(next.UTC().Format("2006-01-02 15:04:05"), ":00")
			}
			if changes != c.changes {
				t.Errorf("changes at %s, want %s", changes, c.changes)
			}
		})
	}
}

// TestOpenings_SayWhatANewReadingSays: a rollout reads a window once, and evaluates it at every turn until it expires.
func TestOpenings_SayWhatANewReadingSays(t *testing.T) {
	read := at(t, "UTC", "2026-11-20 10:00")
	for name, c := range map[string]struct {
		spec v1alpha1.WindowGate
		// expires is how long after the reading the openings expire.
		expires time.Duration
	}{
		"Office":        {v1alpha1.WindowGate{TimeZone: berlin, Allow: []v1alpha1.TimeRange{weekdays("09:00-17:00")}}, day},
		"AlwaysOpen":    {v1alpha1.WindowGate{TimeZone: berlin}, day},
		"NeverOpen":     {v1alpha1.WindowGate{TimeZone: berlin, Exclude: []v1alpha1.TimeRange{weekdays("")}}, day},
		"OpensInAYear":  {v1alpha1.WindowGate{TimeZone: "UTC", Allow: []v1alpha1.TimeRange{cron("0 22 21 11 *", time.Hour)}}, day},
		"ClosesInAYear": {v1alpha1.WindowGate{TimeZone: "UTC", Exclude: []v1alpha1.TimeRange{cron("0 22 21 11 *", time.Hour)}}, day},
		"Unreadable":    {v1alpha1.WindowGate{TimeZone: "Nowhere"}, day},
		"EachOtherMinute": {
			v1alpha1.WindowGate{TimeZone: berlin, Allow: []v1alpha1.TimeRange{cron("*/2 * * * *", time.Minute)}}, 59 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			openings := gates.ReadWindow(c.spec, read)
			for now := read; now.Before(read.Add(c.expires)); now = now.Add(30 * time.Second) {
				if openings.Expired(now) {
					t.Fatalf("expired at %s", now)
				}
				verdict, changes := openings.At(now)
				if want, wanted := gates.Window(c.spec, now); verdict != want || !changes.Equal(wanted) {
					t.Fatalf("%s: got %v, changes at %s; a new reading says %v, %s", now, verdict, changes, want, wanted)
				}
			}
			if !openings.Expired(read.Add(-1)) || !openings.Expired(read.Add(c.expires)) {
				t.Error("not expired before it was read, or after it")
			}
		})
	}
	if none := (gates.Openings{}); !none.Expired(read) || !none.Expired(time.Time{}) {
		t.Error("no reading is not expired")
	}
}

func TestWindow_SecondHourOfTheSameName(t *testing.T) {
	spec := v1alpha1.WindowGate{TimeZone: newYork, Allow: []v1alpha1.TimeRange{cron("30 1 * * *", 10*time.Minute)}}
	now := time.Date(2026, 11, 1, 5, 45, 0, 0, time.UTC) // 01:45 EDT, after the first 01:30
	if verdict, next := gates.Window(spec, now); verdict.Reason != "opens Sun 01:30 EST" || !next.Equal(time.Date(2026, 11, 1, 6, 30, 0, 0, time.UTC)) {
		t.Errorf("got %v, %s", verdict, next)
	}
}

func TestCheckWindow(t *testing.T) {
	open := []v1alpha1.TimeRange{weekdays("09:00-17:00")}
	now := at(t, "UTC", "2026-11-20 10:00")
	for name, c := range map[string]struct {
		zone           string
		allow, exclude []v1alpha1.TimeRange
		want           string
	}{
		"Good":          {berlin, open, nil, ""},
		"Zone":          {"Europe/Berlim", open, nil, `unknown time zone "Europe/Berlim": use an IANA name, such as Europe/Berlin`},
		"Local":         {"Local", open, nil, `unknown time zone "Local": use an IANA name, such as Europe/Berlin`},
		"NoZone":        {"", open, nil, `unknown time zone "": use an IANA name, such as Europe/Berlin`},
		"Cron":          {berlin, open, []v1alpha1.TimeRange{weekdays(""), cron("61 * * * *", time.Hour)}, `exclude[1]: cannot read cron "61 * * * *": end of range (61) above maximum (59): 61`},
		"CronFields":    {berlin, []v1alpha1.TimeRange{cron("0 9 * *", time.Hour)}, nil, `allow[0]: cannot read cron "0 9 * *": expected exactly 5 fields, found 4: [0 9 * *]`},
		"CronZone":      {berlin, []v1alpha1.TimeRange{cron("TZ=UTC", time.Hour)}, nil, `allow[0]: cannot read cron "TZ=UTC": the zone is that of the window`},
		"CronName":      {berlin, []v1alpha1.TimeRange{cron("@daily", time.Hour)}, nil, `allow[0]: cannot read cron "@daily": parser does not accept descriptors: @daily`},
		"NoDuration":    {berlin, []v1alpha1.TimeRange{{Cron: "0 9 * * *"}}, nil, "allow[0]: cron needs a duration above zero"},
		"Hours":         {berlin, []v1alpha1.TimeRange{weekdays("9 to 5")}, nil, `allow[0]: cannot read hours "9 to 5"; use a form such as 09:00-17:00`},
		"Weekday":       {berlin, []v1alpha1.TimeRange{weekdays("", "Mon", "Monday")}, nil, "allow[0]: unknown weekday in [Mon Monday]; use Mon, Tue, Wed, Thu, Fri, Sat and Sun"},
		"NeverOpen":     {berlin, []v1alpha1.TimeRange{cron("0 9 30 2 *", time.Hour)}, nil, "the window does not open within a year"},
		"AllExcluded":   {berlin, open, []v1alpha1.TimeRange{weekdays("08:00-18:00")}, "the window does not open within a year"},
		"EachMinute":    {berlin, open, []v1alpha1.TimeRange{cron("* * * * *", time.Minute)}, "the window does not open within a year"},
		"TwoInTurn":     {berlin, open, []v1alpha1.TimeRange{cron("*/2 * * * *", time.Minute), cron("1-59/2 * * * *", time.Minute)}, "the window does not open within a year"},
		"LeapDay":       {berlin, []v1alpha1.TimeRange{cron("0 9 29 2 *", time.Hour)}, nil, "the window does not open within a year"},
		"OnceAYear":     {berlin, []v1alpha1.TimeRange{cron("0 9 20 11 *", time.Hour)}, nil, ""},
		"ExcludedYear":  {berlin, nil, []v1alpha1.TimeRange{cron("0 0 1 1 *", 9000*time.Hour)}, "the window does not open within a year"},
		"EndlessWindow": {berlin, nil, []v1alpha1.TimeRange{cron("0 0 29 2 *", 1<<63-1)}, "the window does not open within a year"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			spec := v1alpha1.WindowGate{TimeZone: c.zone, Allow: c.allow, Exclude: c.exclude}
			if err := gates.CheckWindow(spec, now); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// repeated is a time of a window as the test draws it. The oracle reads the fields, the window
// gets the text.
type repeated struct {
	// minutes, hours, dates, months and weekdays of a cron expression; empty: all.
	minutes, hours, dates, months, weekdays []int
	// duration in minutes; 0: not cron, but from one minute of the day to before another.
	duration, from, to int
}

// field writes a field of a cron expression.
func field(values []int) string {
	if len(values) == 0 {
		return "*"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", ","), "[]")
}

func (r repeated) spec() v1alpha1.TimeRange {
	if r.duration > 0 {
		expression := strings.Join([]string{field(r.minutes), field(r.hours), field(r.dates), field(r.months), field(r.weekdays)}, " ")
		return cron(expression, time.Duration(r.duration)*time.Minute)
	}
	out := v1alpha1.TimeRange{Hours: fmt.Sprintf("%02d:%02d-%02d:%02d", r.from/60, r.from%60, r.to/60, r.to%60)}
	for _, d := range r.weekdays {
		out.Weekdays = append(out.Weekdays, time.Weekday(d).String()[:3])
	}
	return out
}

func has(values []int, value int) bool { return len(values) == 0 || slices.Contains(values, value) }

// begins reports whether a cron expression matches what a clock shows.
func (r repeated) begins(shown time.Time) bool {
	date, weekday := has(r.dates, shown.Day()), has(r.weekdays, int(shown.Weekday()))
	onDay := date && weekday
	if len(r.dates) > 0 && len(r.weekdays) > 0 {
		onDay = date || weekday
	}
	return onDay && has(r.minutes, shown.Minute()) && has(r.hours, shown.Hour()) && has(r.months, int(shown.Month()))
}

// contains reports whether a time of the day contains what a clock shows.
func (r repeated) contains(shown time.Time) bool {
	minute := 60*shown.Hour() + shown.Minute()
	today, yesterday := has(r.weekdays, int(shown.Weekday())), has(r.weekdays, int(shown.Weekday()+6)%7)
	if r.from < r.to {
		return today && r.from <= minute && minute < r.to
	}
	return today && r.from <= minute || yesterday && minute < r.to
}

// clockFace is what the clocks of a zone show, as a time in UTC.
func clockFace(t time.Time, zone *time.Location) time.Time {
	l := t.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
}

// covered says, minute by minute, whether one of the times contains it. It looks at clocks, one
// minute after the other, from early enough on.
func covered(times []repeated, zone *time.Location, from time.Time, minutes int) []bool {
	const before = 3 * 24 * 60 // minutes, more than any duration
	out := make([]bool, minutes)
	for _, r := range times {
		left := 0
		shown := clockFace(from.Add(-(before+1)*time.Minute), zone)
		for m := -before; m < minutes; m++ {
			last := shown
			shown = clockFace(from.Add(time.Duration(m)*time.Minute), zone)
			left--
			if r.duration > 0 && r.begins(shown) {
				left = r.duration
			}
			for skipped := last.Add(time.Minute); skipped.Before(shown); skipped = skipped.Add(time.Minute) {
				if r.duration > 0 && r.begins(skipped) {
					left = r.duration
				}
			}
			if m >= 0 && (left > 0 || r.duration == 0 && r.contains(shown)) {
				out[m] = true
			}
		}
	}
	return out
}

func drawTimes(t *rapid.T, label string) []repeated {
	values := func(name string, from, to, most int) []int {
		drawn := rapid.SliceOfNDistinct(rapid.IntRange(from, to), 0, most, rapid.ID).Draw(t, name)
		slices.Sort(drawn)
		return drawn
	}
	out := make([]repeated, rapid.IntRange(0, 3).Draw(t, label))
	for i := range out {
		weekdays := values("weekdays", 0, 6, 4)
		if rapid.Bool().Draw(t, "cron") {
			out[i] = repeated{
				minutes: values("minutes", 0, 59, 3), hours: values("hours", 0, 23, 4), dates: values("dates", 1, 31, 12),
				months: values("months", 1, 12, 6), weekdays: weekdays,
				duration: rapid.OneOf(rapid.IntRange(1, 90), rapid.IntRange(1, 3*24*60-1)).Draw(t, "duration"),
			}
			continue
		}
		out[i] = repeated{
			weekdays: weekdays,
			from:     rapid.IntRange(0, 24*60-1).Draw(t, "from"), to: rapid.IntRange(0, 24*60).Draw(t, "to"),
		}
	}
	return out
}

// changes are moments at which clocks are changed, in zones with unusual rules too: at midnight,
// by half an hour, in both directions.
var changes = []struct{ zone, at string }{
	{berlin, "2026-03-29 01:00"},
	{berlin, "2026-10-25 01:00"},
	{newYork, "2026-03-08 07:00"},
	{newYork, "2026-11-01 06:00"},
	{lordHowe, "2026-04-04 15:00"},
	{lordHowe, "2026-10-03 15:30"},
	{"America/Havana", "2026-03-08 05:00"},
	{"America/Havana", "2026-11-01 05:00"},
	{"Africa/Casablanca", "2026-02-15 02:00"},
	{"Pacific/Apia", "2011-12-30 10:00"},
	{"UTC", "2026-12-31 23:00"},
	{"Asia/Kathmandu", "2028-02-29 00:00"},
}

// TestWindow_AgreesWithEveryMinute compares state and next change with a clock that is looked at
// every minute of five days around a change of daylight saving.
func TestWindow_AgreesWithEveryMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		change := rapid.SampledFrom(changes).Draw(t, "change")
		zone, err := time.LoadLocation(change.zone)
		if err != nil {
			t.Fatal(err)
		}
		middle, err := time.Parse("2006-01-02 15:04", change.at)
		if err != nil {
			t.Fatal(err)
		}
		now := middle.Add(time.Duration(rapid.IntRange(-3*24*60, 60).Draw(t, "minutes")) * time.Minute)
		allow, exclude := drawTimes(t, "allow"), drawTimes(t, "exclude")

		const minutes = 5 * 24 * 60
		open := covered(exclude, zone, now, minutes)
		allowed := covered(allow, zone, now, minutes)
		for m := range open {
			open[m] = !open[m] && (len(allow) == 0 || allowed[m])
		}
		spec := v1alpha1.WindowGate{TimeZone: change.zone}
		for _, r := range allow {
			spec.Allow = append(spec.Allow, r.spec())
		}
		for _, r := range exclude {
			spec.Exclude = append(spec.Exclude, r.spec())
		}
		for m := 0; m < minutes; {
			from := now.Add(time.Duration(m) * time.Minute)
			verdict, next := gates.Window(spec, from.Add(time.Duration(rapid.IntRange(0, 59).Draw(t, "seconds"))*time.Second))
			if want := map[bool]v1alpha1.GateState{true: v1alpha1.GatePassed, false: v1alpha1.GateWaiting}[open[m]]; verdict.State != want {
				t.Fatalf("%s: got %s (%s), want %s\n%+v", from.In(zone), verdict.State, verdict.Reason, want, spec)
			}
			end := m + 1
			for end < minutes && open[end] == open[m] {
				end++
			}
			want := now.Add(time.Duration(end) * time.Minute)
			if end < minutes && !next.Equal(want) || end == minutes && !next.IsZero() && next.Before(want) {
				t.Fatalf("%s: %s changes at %s, want %s\n%+v", from.In(zone), verdict.State, next.In(zone), want.In(zone), spec)
			}
			m = end
		}
	})
}

// TestWindow_IsQuick: the files of a commit do not keep the operator busy, and each turn of a rollout reads a window. The
// measure is a walk over the minutes of a year on the same machine.
func TestWindow_IsQuick(t *testing.T) {
	now := at(t, berlin, "2026-11-20 10:00")
	var most []v1alpha1.TimeRange
	for range 20 {
		most = append(most, cron("*/2 * * * *", time.Minute), cron("1-59/2 * * * *", time.Minute), cron("* * 1 1 *", 1<<63-1))
	}
	never := []v1alpha1.TimeRange{}
	for range 20 {
		never = append(never, cron("* * 29 2 *", 1000*time.Hour), cron("0 0 30 2 *", 1<<63-1))
	}
	walk := fastest(func() {
		for m := now; m.Before(now.Add(366 * 24 * time.Hour)); m = m.Add(time.Minute) {
			_, _, _ = m.In(now.Location()).Clock()
		}
	})
	for name, c := range map[string]struct {
		spec v1alpha1.WindowGate
		// most walks that it may take.
		most float64
	}{
		"EachMinute": {v1alpha1.WindowGate{TimeZone: berlin, Allow: []v1alpha1.TimeRange{cron("* * * * *", time.Minute)}}, 15},
		"Most":       {v1alpha1.WindowGate{TimeZone: berlin, Allow: most, Exclude: never}, 40},
	} {
		var verdict gates.Verdict
		took := fastest(func() { verdict, _ = gates.Window(c.spec, now) })
		if walks := float64(took) / float64(walk); verdict.State != v1alpha1.GatePassed || walks > c.most {
			t.Errorf("%s: got %v; it takes as long as %.1f walks", name, verdict, walks)
		} else {
			t.Logf("%s: %.1f walks", name, walks)
		}
	}
}

// fastest is the shortest of five times that f takes.
func fastest(f func()) time.Duration {
	best := time.Duration(1<<63 - 1)
	for range 5 {
		start := time.Now() //nolint:forbidigo // measures the evaluation itself
		f()
		best = min(best, time.Since(start)) //nolint:forbidigo // as above
	}
	return best
}

func BenchmarkWindow(b *testing.B) {
	for name, spec := range map[string]v1alpha1.WindowGate{
		"Office":     {Allow: []v1alpha1.TimeRange{weekdays("09:00-17:00", "Mon", "Tue")}, Exclude: []v1alpha1.TimeRange{cron("0 0 24 12 *", 200*time.Hour)}},
		"EachMinute": {Allow: []v1alpha1.TimeRange{cron("* * * * *", time.Minute)}},
	} {
		b.Run(name, func(b *testing.B) {
			spec.TimeZone = berlin
			now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
			for b.Loop() {
				gates.Window(spec, now)
			}
		})
	}
}

func FuzzWindow(f *testing.F) {
	f.Add("Europe/Berlin", "0 9 * * MON-FRI", int64(time.Hour), "09:00-17:00", "Mon", int64(1_800_000_000))
	f.Add("../UTC", "TZ=", int64(-1), "24:00-00:00", "", int64(0))
	f.Add("Australia/Lord_Howe", "*/7 1-3/2 ? * 0", int64(1<<63-1), "00:00-24:00", "Sun", int64(-1<<40))
	f.Fuzz(func(t *testing.T, zone, expression string, duration int64, hours, weekday string, now int64) {
		if now > 1<<40 || now < -1<<40 {
			return
		}
		spec := v1alpha1.WindowGate{
			TimeZone: zone, Allow: []v1alpha1.TimeRange{weekdays(hours, weekday)}, Exclude: []v1alpha1.TimeRange{cron(expression, time.Duration(duration))},
		}
		moment := time.Unix(now, 0)
		verdict, next := gates.Window(spec, moment)
		if (gates.CheckWindow(spec, moment) == nil) != (verdict.State == v1alpha1.GatePassed || verdict.State == v1alpha1.GateWaiting && !next.IsZero()) {
			t.Errorf("%v, but %v", verdict, gates.CheckWindow(spec, moment))
		}
		if next.IsZero() {
			return
		}
		if !next.After(moment) {
			t.Errorf("changes at %s, before %s", next, moment)
		}
		if then, _ := gates.Window(spec, next); then.State == verdict.State {
			t.Errorf("%v is %v at %s", verdict, then, next)
		}
	})
}
