package rollout

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// patient is a pace with a soak of 10 minutes, a declared deadline of 30, and 10 minutes
// for an apply error.
var patient = pace{
	soak: 10 * time.Minute, deadline: 30 * time.Minute, declared: true,
	parkAfter: 10 * time.Minute, applyErrorAfter: 10 * time.Minute,
}

// sound is an available cluster whose works are written and verified.
var sound = observation{member: true, available: true, written: true, health: Health{State: HealthVerified}}

func with(o observation, changes ...func(*observation)) observation {
	for _, change := range changes {
		change(&o)
	}
	return o
}

func gone(o *observation)        { o.member, o.available, o.written = false, false, false }
func unavailable(o *observation) { o.available = false }
func unwritten(o *observation)   { o.written = false }
func silent(o *observation)      { o.health = Health{} }
func updating(o *observation)    { o.health = Health{State: HealthProgressing, Reason: "1 of 3 updated"} }

func failing(o *observation) { o.health = Health{State: HealthFailed, Reason: "image does not exist"} }
func blocked(o *observation) { o.written, o.blocked = false, "no value for GREETING" }
func paused(o *observation)  { o.written, o.paused = false, "the revision is missing" }
func pausing(o *observation) { o.paused = "another source owns it" }
func waiting(o *observation) { o.written, o.awaits = false, "a work is being deleted" }

func refusing(since time.Duration) func(*observation) {
	return func(o *observation) {
		o.written, o.unwritten, o.unwrittenSince = false, "a webhook denied the request", noon.Add(-since)
	}
}

func refused(since time.Duration) func(*observation) {
	return func(o *observation) {
		o.health = Health{State: HealthProgressing, NotApplied: "field is immutable", BadSince: noon.Add(-since)}
	}
}

func flapped(ago time.Duration) func(*observation) {
	return func(o *observation) { o.changed = noon.Add(-ago) }
}

// TestNext has each row of the table of next, and each of its edges: one second before
// and at the time that decides. A record was admitted `admitted` ago and entered its state
// `since` ago.
func TestNext(t *testing.T) {
	const s, m = time.Second, time.Minute
	undeclared, none, proven, endless, inRevert, longest := patient, patient, patient, patient, patient, patient
	longest.soak = math.MaxInt64
	undeclared.declared = false
	none.deadline, none.declared = 0, false
	proven.soak = 0
	endless.endless = "the add-on is to be removed"
	inRevert.inRevert = true
	hasty := undeclared
	hasty.deadline = 5 * m
	for name, c := range map[string]struct {
		state           State
		admitted, since time.Duration
		o               observation
		p               pace
		want            State
		// ahead of now is the change of availability that the soak counts already.
		ahead time.Duration
		// kept: the state's clock does not start again.
		kept bool
		// anew: it takes a slot again.
		anew bool
		// failed: it failed before it came into its state; failing: and counts as a failure since.
		failed, failing bool
	}{
		"Admitted: works not written":                        {state: Admitted, o: with(sound, unwritten), want: Admitted, kept: true},
		"Admitted: works written":                            {state: Admitted, o: with(sound, updating), want: Updating},
		"Admitted: written and verified between two looks":   {state: Admitted, o: sound, want: Soaking},
		"Admitted: the works cannot be written":              {state: Admitted, o: with(sound, blocked), want: NotWritten},
		"Admitted: written, and a failure is reported":       {state: Admitted, o: with(sound, failing), want: Failed},
		"Admitted: lost after deadline and soak":             {state: Admitted, admitted: 40 * m, since: 40 * m, o: with(sound, unwritten, unavailable), want: Parked},
		"Admitted: not available":                            {state: Admitted, o: with(sound, unwritten, unavailable), want: Lost},
		"Admitted: feedback of other content counts nothing": {state: Admitted, o: with(sound, unwritten, failing), want: Admitted, kept: true},
		"Admitted: the operator was away for long":           {state: Admitted, admitted: 99 * m, since: 99 * m, o: with(sound, unwritten), want: Admitted, kept: true},
		"Admitted: awaits, just before the deadline":         {state: Admitted, admitted: 30*m - s, since: 30*m - s, o: with(sound, waiting), want: Admitted, kept: true},
		"Admitted: awaits, at the deadline":                  {state: Admitted, admitted: 30 * m, since: 30 * m, o: with(sound, waiting), want: NotWritten},
		"Admitted: refused since just before 10m":            {state: Admitted, admitted: 11 * m, since: 10*m - s, o: with(sound, refusing(5*m)), want: Admitted, kept: true},
		"Admitted: refused at one look":                      {state: Admitted, admitted: 20 * m, since: 20 * m, o: with(sound, refusing(m-s)), want: Admitted, kept: true},
		"Admitted: the refusal lasts, no deadline":           {state: Admitted, admitted: 11 * m, since: 10 * m, o: with(sound, refusing(m)), p: none, want: Failed},
		"Admitted: refused, and it is lost":                  {state: Admitted, admitted: 11 * m, since: 10 * m, o: with(sound, refusing(m), unavailable), want: Lost},
		"Admitted: refused for a shorter deadline":           {state: Admitted, admitted: 5 * m, since: 5 * m, o: with(sound, refusing(m)), p: hasty, want: TimedOut},
		"Failed: the hub refuses its works":                  {state: Failed, admitted: 11 * m, since: m, o: with(sound, refusing(m)), want: Failed, kept: true},
		"Admitted: no deadline runs while writes are paused": {state: Admitted, admitted: 31 * m, since: 31 * m, o: with(sound, paused, waiting), want: Admitted},
		"Admitted: writes are paused for less than a minute": {state: Admitted, admitted: m - s, since: m - s, o: with(sound, paused), want: Admitted, kept: true},

		"Updating: not verified yet":                              {state: Updating, admitted: m, since: m, o: with(sound, updating), want: Updating, kept: true},
		"Updating: no feedback":                                   {state: Updating, admitted: m, since: m, o: with(sound, silent), want: Updating, kept: true},
		"Updating: verified":                                      {state: Updating, admitted: m, since: m, o: sound, want: Soaking},
		"Updating: verified, and no soak is declared":             {state: Updating, admitted: m, since: m, o: sound, p: proven, want: Done},
		"Updating: a failure is reported":                         {state: Updating, admitted: m, since: m, o: with(sound, failing), want: Failed},
		"Updating: a failure before the loss counts":              {state: Updating, admitted: m, since: m, o: with(sound, failing, unavailable), want: Failed},
		"Updating: not available":                                 {state: Updating, admitted: m, since: m, o: with(sound, updating, unavailable), want: Lost},
		"Updating: verified feedback of a lost one":               {state: Updating, admitted: m, since: m, o: with(sound, unavailable), want: Lost},
		"Updating: its own inputs changed":                        {state: Updating, admitted: m, since: m, o: with(sound, unwritten), want: Admitted},
		"Updating: at the deadline":                               {state: Updating, admitted: 31 * m, since: 30 * m, o: with(sound, updating), want: TimedOut},
		"Updating: just before the deadline":                      {state: Updating, admitted: 30*m - s, since: 30*m - s, o: with(sound, updating), want: Updating, kept: true},
		"Updating: late in its slot, and just back":               {state: Updating, admitted: 90 * m, since: m, o: with(sound, updating), want: Updating, kept: true},
		"Updating: lost again, before deadline and soak are over": {state: Updating, admitted: 40*m - s, since: m, o: with(sound, updating, unavailable), want: Lost},
		"Updating: lost again, after deadline and soak":           {state: Updating, admitted: 40 * m, since: m, o: with(sound, updating, unavailable), want: Parked},
		"Updating: the same, and writes are paused":               {state: Updating, admitted: 40 * m, since: s, o: with(sound, updating, unavailable, pausing), want: Lost},
		"Updating: the same, and there is no deadline":            {state: Updating, admitted: 999 * m, since: m, o: with(sound, updating, unavailable), p: none, want: Lost},
		"Updating: verified after a failure":                      {state: Updating, failed: true, admitted: m, since: m, o: sound, want: Soaking, failing: true},
		"Updating: lost after a failure":                          {state: Updating, failed: true, admitted: m, since: m, o: with(sound, unavailable), want: Lost, failing: true},
		"Updating: left after a failure":                          {state: Updating, failed: true, admitted: m, since: m, o: with(sound, gone), want: LeftFailed},
		"Updating: a failure is reported again":                   {state: Updating, failed: true, admitted: m, since: m, o: with(sound, failing), want: Failed},
		"Admitted: the works of a failure cannot be written":      {state: Admitted, failed: true, o: with(sound, blocked), want: Failed},
		"Updating: late, and writes are paused":                   {state: Updating, admitted: 30 * m, since: 30 * m, o: with(sound, updating, pausing), want: Updating},
		"Updating: at no deadline":                                {state: Updating, admitted: 999 * m, since: 999 * m, o: with(sound, updating), p: none, want: Updating, kept: true},
		"Updating: an apply error that is new":                    {state: Updating, admitted: m, since: m, o: with(sound, refused(m)), want: Updating, kept: true},
		"Updating: an apply error seen once":                      {state: Updating, admitted: 11 * m, since: 11 * m, o: with(sound, refused(m-s)), want: Updating, kept: true},
		"Updating: an apply error just before 10m":                {state: Updating, admitted: 11 * m, since: 10*m - s, o: with(sound, refused(5*m)), want: Updating, kept: true},
		"Updating: an apply error that lasts":                     {state: Updating, admitted: 11 * m, since: 10 * m, o: with(sound, refused(m)), want: Failed},
		"Updating: an apply error lasts, no deadline":             {state: Updating, admitted: 11 * m, since: 10 * m, o: with(sound, refused(m)), p: none, want: Failed},
		"Updating: an apply error, and it is lost":                {state: Updating, admitted: 11 * m, since: 10 * m, o: with(sound, refused(m), unavailable), want: Lost},
		"Updating: an apply error stays with the fail":            {state: Failed, admitted: 11 * m, since: m, o: with(sound, refused(m)), want: Failed, kept: true},

		"Soaking: one second before its end":              {state: Soaking, admitted: 20 * m, since: 10*m - s, o: sound, want: Soaking, kept: true},
		"Soaking: at its end":                             {state: Soaking, admitted: 20 * m, since: 10 * m, o: sound, want: Done},
		"Soaking: a deadline does not end a soak":         {state: Soaking, admitted: 31 * m, since: m, o: sound, want: Soaking, kept: true},
		"Soaking: at its end without feedback":            {state: Soaking, admitted: 20 * m, since: 10 * m, o: with(sound, silent), want: Soaking, kept: true},
		"Soaking: silent for a deadline after its end":    {state: Soaking, admitted: 60 * m, since: 40 * m, o: with(sound, silent), want: TimedOut},
		"Soaking: silent, and the soak is the longest":    {state: Soaking, admitted: 60 * m, since: 40 * m, o: with(sound, silent), p: longest, want: Soaking, kept: true},
		"Soaking: ill, and the soak is the longest":       {state: Soaking, admitted: 60 * m, since: 40 * m, o: with(sound, updating), p: longest, want: Updating},
		"Soaking: silent, and there is no deadline":       {state: Soaking, admitted: 999 * m, since: 999 * m, o: with(sound, silent), p: none, want: Soaking, kept: true},
		"Soaking: health is lost":                         {state: Soaking, admitted: 20 * m, since: 9 * m, o: with(sound, updating), want: Updating},
		"Soaking: health is lost after the deadline":      {state: Soaking, admitted: 40*m - s, since: 9 * m, o: with(sound, updating), want: Updating},
		"Soaking: health is lost after deadline and soak": {state: Soaking, admitted: 40 * m, since: 9 * m, o: with(sound, updating), want: TimedOut},
		"Soaking: the same, and writes are paused":        {state: Soaking, admitted: 40 * m, since: 9 * m, o: with(sound, updating, pausing), want: Updating},
		"Soaking: the end of the soak after a failure":    {state: Soaking, failed: true, admitted: 20 * m, since: 10 * m, o: sound, want: Done},
		"Soaking: a failure is reported":                  {state: Soaking, admitted: 20 * m, since: 9 * m, o: with(sound, failing), want: Failed},
		"Soaking: not available":                          {state: Soaking, admitted: 20 * m, since: 9 * m, o: with(sound, unavailable), want: Lost},
		"Soaking: lost after deadline and soak":           {state: Soaking, admitted: 40 * m, since: 9 * m, o: with(sound, unavailable), want: Parked},
		"Soaking: lost after its deadline":                {state: Soaking, admitted: 31 * m, since: 9 * m, o: with(sound, unavailable), want: Lost},
		"Soaking: lost and back while no operator ran":    {state: Soaking, admitted: 20 * m, since: 10 * m, o: with(sound, flapped(m)), want: Soaking},
		"Soaking: changed before the soak began":          {state: Soaking, admitted: 20 * m, since: 10 * m, o: with(sound, flapped(10*m)), want: Done},
		"Soaking: changed by a clock that is ahead":       {state: Soaking, admitted: 20 * m, since: 10 * m, o: with(sound, flapped(-60*m)), want: Soaking},
		"Soaking: the same, which it counts already":      {state: Soaking, admitted: 20 * m, since: 10 * m, ahead: 60 * m, o: with(sound, flapped(-60*m)), want: Done},
		"Soaking: its own inputs changed":                 {state: Soaking, admitted: 20 * m, since: 9 * m, o: with(sound, unwritten), want: Admitted},
		"Soaking: at its end, and no soak ends":           {state: Soaking, admitted: 20 * m, since: 10 * m, o: sound, p: endless, want: Soaking, kept: true},
		"Soaking: the content was proven in the meantime": {state: Soaking, admitted: 20 * m, since: m, o: sound, p: proven, want: Done},

		"Done: verified":                            {state: Done, admitted: 60 * m, since: 30 * m, o: sound, want: Done, kept: true},
		"Done: fails afterwards":                    {state: Done, admitted: 60 * m, since: 30 * m, o: with(sound, failing), want: Done, kept: true},
		"Done: not available":                       {state: Done, admitted: 60 * m, since: 30 * m, o: with(sound, unavailable), want: Done, kept: true},
		"Done: needs an admission":                  {state: Done, admitted: 60 * m, since: 30 * m, o: with(sound, unwritten), want: Done, kept: true},
		"Done: left the add-on":                     {state: Done, admitted: 60 * m, since: 30 * m, o: with(sound, gone), want: Done, kept: true},
		"Failed: still failing":                     {state: Failed, admitted: 20 * m, since: m, o: with(sound, failing), want: Failed, kept: true},
		"Failed: progressing again":                 {state: Failed, admitted: 20 * m, since: m, o: with(sound, updating), want: Failed, kept: true},
		"Failed: vanishing":                         {state: Failed, admitted: 20 * m, since: m, o: with(sound, unavailable), want: Failed, kept: true},
		"Failed: verified after all":                {state: Failed, admitted: 20 * m, since: m, o: sound, want: Soaking, anew: true, failing: true},
		"Failed: verified, and no soak is declared": {state: Failed, admitted: 20 * m, since: m, o: sound, p: proven, want: Done, anew: true},
		"Failed: verified, not there":               {state: Failed, admitted: 20 * m, since: m, o: with(sound, unavailable), want: Failed, kept: true},
		"TimedOut: still silent":                    {state: TimedOut, admitted: 40 * m, since: m, o: with(sound, silent), want: TimedOut, kept: true},
		"TimedOut: vanishing":                       {state: TimedOut, admitted: 40 * m, since: m, o: with(sound, silent, unavailable), want: TimedOut, kept: true},
		"TimedOut: verified late":                   {state: TimedOut, admitted: 40 * m, since: m, o: sound, want: Soaking, anew: true, failing: true},
		"TimedOut: fails late":                      {state: TimedOut, admitted: 40 * m, since: m, o: with(sound, failing), want: Failed},

		"Lost: just before the declared deadline":         {state: Lost, admitted: 60 * m, since: 30*m - s, o: with(sound, silent, unavailable), want: Lost, kept: true},
		"Lost: at the declared deadline":                  {state: Lost, admitted: 31 * m, since: 30 * m, o: with(sound, silent, unavailable), want: Parked},
		"Lost: default deadline, before the park time":    {state: Lost, admitted: 15 * m, since: 10*m - s, o: with(sound, silent, unavailable), p: undeclared, want: Lost, kept: true},
		"Lost: default deadline, at the park time":        {state: Lost, admitted: 15 * m, since: 10 * m, o: with(sound, silent, unavailable), p: undeclared, want: Parked},
		"Lost: default deadline is earlier":               {state: Lost, admitted: 30 * m, since: 5 * m, o: with(sound, silent, unavailable), p: hasty, want: Parked},
		"Lost: past its time, and writes are paused":      {state: Lost, admitted: 60 * m, since: 40 * m, o: with(sound, silent, unavailable, pausing), want: Lost},
		"Lost: back just before its slot ends":            {state: Lost, admitted: 60 * m, since: 30*m - s, o: with(sound, updating), want: Updating},
		"Lost: back after its slot ended":                 {state: Lost, admitted: 60 * m, since: 40 * m, o: with(sound, updating), want: Updating},
		"Lost: no deadline, at the park time":             {state: Lost, admitted: 99 * m, since: 10 * m, o: with(sound, silent, unavailable), p: none, want: Parked},
		"Lost: back, not verified":                        {state: Lost, admitted: 15 * m, since: 5 * m, o: with(sound, updating), want: Updating},
		"Lost: back and verified":                         {state: Lost, admitted: 15 * m, since: 5 * m, o: sound, want: Soaking},
		"Lost: back, its works not written":               {state: Lost, admitted: 15 * m, since: 5 * m, o: with(sound, unwritten), want: Admitted},
		"Lost: its last word is a failure":                {state: Lost, admitted: 15 * m, since: 5 * m, o: with(sound, failing, unavailable), want: Failed},
		"Lost: in a revert":                               {state: Lost, admitted: 15 * m, since: s, o: with(sound, silent, unavailable), p: inRevert, want: Parked},
		"Parked: not available":                           {state: Parked, admitted: 60 * m, since: 30 * m, o: with(sound, silent, unavailable), want: Parked, kept: true},
		"Parked: back, not verified":                      {state: Parked, admitted: 60 * m, since: 30 * m, o: with(sound, updating), want: Updating, anew: true},
		"Parked: back and verified":                       {state: Parked, admitted: 60 * m, since: 30 * m, o: sound, want: Soaking, anew: true},
		"Parked: back and failed":                         {state: Parked, admitted: 60 * m, since: 30 * m, o: with(sound, failing), want: Failed},
		"Parked: back, never written":                     {state: Parked, admitted: 60 * m, since: 30 * m, o: with(sound, unwritten), want: Parked, kept: true},
		"Parked: its works cannot be written":             {state: Parked, admitted: 60 * m, since: 30 * m, o: with(sound, blocked, unavailable), want: NotWritten},
		"Parked: those of a failure cannot be written":    {state: Parked, failed: true, admitted: 60 * m, since: 30 * m, o: with(sound, blocked, unavailable), want: Failed},
		"NotWritten: they are, and a failure is reported": {state: NotWritten, admitted: 60 * m, since: 30 * m, o: with(sound, failing), want: Failed},
		"NotWritten: they still cannot be":                {state: NotWritten, admitted: 60 * m, since: 30 * m, o: with(sound, blocked), want: NotWritten, kept: true},
		"NotWritten: they can be, and are not":            {state: NotWritten, admitted: 60 * m, since: 30 * m, o: with(sound, unwritten), want: NotWritten, kept: true},
		"NotWritten: what it runs is verified":            {state: NotWritten, admitted: 60 * m, since: 30 * m, o: with(sound, unwritten, unavailable), want: NotWritten, kept: true},
		"NotWritten: they are":                            {state: NotWritten, admitted: 60 * m, since: 30 * m, o: with(sound, updating), want: Updating, anew: true},

		"Admitted: left":   {state: Admitted, o: with(sound, gone), want: Left},
		"Updating: left":   {state: Updating, o: with(sound, gone), want: Left},
		"Soaking: left":    {state: Soaking, o: with(sound, gone), want: Left},
		"Lost: left":       {state: Lost, o: with(sound, gone), want: Left},
		"Parked: left":     {state: Parked, o: with(sound, gone), want: Left},
		"Failed: left":     {state: Failed, o: with(sound, gone), want: LeftFailed},
		"NotWritten: left": {state: NotWritten, o: with(sound, gone), want: NotWritten, kept: true},
		"TimedOut: left":   {state: TimedOut, o: with(sound, gone), want: LeftFailed},
		"Updating: left with a failure as its last word": {state: Updating, o: with(sound, failing, func(o *observation) { o.member = false }), want: LeftFailed},
		"Left: still away":         {state: Left, o: with(sound, gone), want: Left, kept: true},
		"LeftFailed: still away":   {state: LeftFailed, o: with(sound, gone), want: LeftFailed, kept: true},
		"Left: back with works":    {state: Left, admitted: 60 * m, since: 30 * m, o: with(sound, updating), want: Updating, anew: true},
		"Left: back without works": {state: Left, admitted: 60 * m, since: 30 * m, o: with(sound, unwritten), want: Left, kept: true},
		"LeftFailed: back":         {state: LeftFailed, admitted: 60 * m, since: 30 * m, o: with(sound, unwritten), want: Failed},
	} {
		t.Run(name, func(t *testing.T) {
			if c.p == (pace{}) {
				c.p = patient
			}
			before := Record{Cluster: "c1", RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "canary", State: c.state, Failed: c.failed}, Admitted: noon.Add(-c.admitted), Since: noon.Add(-c.since)}
			if c.ahead != 0 {
				before.Ahead = noon.Add(c.ahead)
			}
			got, why := next(before, c.o, c.p, noon)
			want := before
			want.State, want.Failed, want.Ahead = c.want, c.failing, time.Time{}
			if c.want == Soaking && c.o.changed.After(noon) {
				want.Ahead = c.o.changed
			}
			if !c.kept {
				want.Since = noon
			}
			if c.anew {
				want.Admitted = noon
			}
			if got.State != Lost {
				want.Refusal = c.o.unwritten
			}
			if got != want {
				t.Errorf("got %+v (%s), want %+v", got, why, want)
			}
			if again, _ := next(got, c.o, c.p, noon); again != got {
				t.Errorf("a second look at the same moment moves it on: %+v, then %+v", got, again)
			}
			if why == "" && got.State != Done || strings.Contains(why, "\n") {
				t.Errorf("%s without a reason: %q", got.State, why)
			}
		})
	}
}

// TestNext_KeepsTheRefusalUntilTheWorksAreWritten: a new process has made no attempt yet.
func TestNext_KeepsTheRefusalUntilTheWorksAreWritten(t *testing.T) {
	r, _ := next(Record{Cluster: "c1", RecordKey: v1alpha1.RecordKey{State: Admitted}, Admitted: noon, Since: noon}, with(sound, refusing(0)), patient, noon)
	r, why := next(r, with(sound, unwritten), patient, noon)
	if want := "admitted; a webhook denied the request"; why != want {
		t.Errorf("after a restart: %q, want %q", why, want)
	}
	if r, _ = next(r, with(sound, updating), patient, noon); r.Refusal != "" {
		t.Errorf("the works are written: %+v", r)
	}
}

// TestNext_CountsAnOldReportOnlyWhileTheClusterIsAvailable: a cluster that reported a failure before it took its slot
// can report anything else only while it is available.
func TestNext_CountsAnOldReportOnlyWhileTheClusterIsAvailable(t *testing.T) {
	const s, m = time.Second, time.Minute
	for name, c := range map[string]struct {
		state           State
		admitted, since time.Duration
		o               observation
		want            State
	}{
		"for ten minutes":                             {Updating, 10 * m, 10 * m, with(sound, failing), Failed},
		"for less":                                    {Updating, 10*m - s, 10*m - s, with(sound, failing), Updating},
		"since it returned, for ten minutes":          {Updating, 20 * m, 10 * m, with(sound, failing), Failed},
		"since it returned, for less":                 {Updating, 20 * m, 10*m - s, with(sound, failing), Updating},
		"it is lost now":                              {Updating, 20 * m, 20 * m, with(sound, failing, unavailable), Lost},
		"it is lost":                                  {Lost, 20 * m, 20 * m, with(sound, failing, unavailable), Lost},
		"it was lost, and returns":                    {Lost, 20 * m, 20 * m, with(sound, failing), Updating},
		"it is lost for as long as it may":            {Lost, 30 * m, 30 * m, with(sound, failing, unavailable), Parked},
		"it was lost, and left the install set since": {Lost, 20 * m, 20 * m, with(sound, failing, gone), Left},
	} {
		t.Run(name, func(t *testing.T) {
			r := Record{Cluster: "c1", RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "canary", State: c.state, Reported: true}, Admitted: noon.Add(-c.admitted), Since: noon.Add(-c.since)}
			if got, _ := next(r, c.o, patient, noon); got.State != c.want {
				t.Errorf("got %s, want %s", got.State, c.want)
			}
		})
	}
}

// TestNextWakesInTime: while nothing is observed again, a record changes at the time that
// wakeAt names, and not before.
func TestNextWakesInTime(t *testing.T) {
	undeclared := patient
	undeclared.declared = false
	for name, c := range map[string]struct {
		state State
		o     observation
		p     pace
	}{
		"Admitted":               {Admitted, with(sound, waiting), patient},
		"Admitted, refused":      {Admitted, with(sound, refusing(0)), patient},
		"Updating":               {Updating, with(sound, updating), patient},
		"Updating, apply error":  {Updating, with(sound, refused(0)), patient},
		"Soaking":                {Soaking, sound, patient},
		"Soaking, silent":        {Soaking, with(sound, silent), patient},
		"Lost":                   {Lost, with(sound, unavailable, silent), patient},
		"Lost, default deadline": {Lost, with(sound, unavailable, silent), undeclared},
	} {
		t.Run(name, func(t *testing.T) {
			r := Record{Cluster: "c1", RecordKey: v1alpha1.RecordKey{Revision: "v2", State: c.state}, Admitted: noon, Since: noon}
			at := r.wakeAt(c.o, c.p)
			if early, _ := next(r, c.o, c.p, at.Add(-time.Second)); early.State != c.state {
				t.Errorf("%s a second before %s", early.State, at)
			}
			if due, _ := next(r, c.o, c.p, at); due.State == c.state {
				t.Errorf("still %s at %s", due.State, at)
			}
		})
	}
}
