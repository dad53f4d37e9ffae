package commitstatus

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	// firstBackoff and lastBackoff bound the wait after failed deliveries, which doubles
	// each time: 5 s, 10 s, ... 5 min.
	firstBackoff = 5 * time.Second
	lastBackoff  = 5 * time.Minute
	// beginWithin is how soon after Enqueue a post must begin. A process that was stopped for longer may have lost
	// its leadership.
	beginWithin = requestTimeout
	// deliverWithin bounds one delivery: reading the forge and posting.
	deliverWithin = 2 * requestTimeout
	// workersAtOnce is how many forges are served at the same time.
	workersAtOnce = 4
	// rememberedLimit is how many contexts without a mark are stored for each key.
	rememberedLimit = 100
)

// DelivererConfig sets a Deliverer up.
type DelivererConfig struct {
	// Clock returns the time; nil: the system's.
	Clock func() time.Time
	// Notify is called with a key after new results for it; nil: no call. A worker calls it, without a lock held. It
	// must not block.
	Notify func(key string)
	// Link returns the link of a status of a key, if the line has no target URL; nil: no link.
	Link func(key, sha string) string
}

// Deliverer posts the statuses that marks have as Posting, outside of the reconcile: Enqueue never waits for a forge.
//
// A line is one forge with one token. A key is one list of marks, and names the object that keeps it. A line posts
// one status at a time, and its keys take turns. So a forge that hangs blocks only one worker. If every request to
// the forge would fail, such as without a connection, the line pauses.
//
// The Deliverer trusts a mark only if this process has read it from the forge or posted it, because a mark may come
// from a backup, and another process may have begun a post. If another process may have begun a post, the Deliverer
// waits one request time before it reads the forge, because that post may be under way. It reads without a wait
// before the first post of a key, after a lost answer, and if a mark contradicts the facts that this process knows.
// Posts precede reads that only confirm a mark.
//
// A post can arrive after a newer post of another process. The process whose post was late reads the forge, and
// enters the result, even if the mark owes nothing or is gone. It also does so if a mark without a delivered verdict
// is gone, because its status was emptied or comes from a backup. A status that no process knows as the operator's is
// foreign. The mark stores the foreign status, so that another process does not judge it differently.
type Deliverer struct {
	config DelivererConfig

	// queue has the names of lines that may have a status to post. It gives a name to one worker at a time.
	queue workqueue.TypedInterface[string]

	mu    sync.Mutex
	lines map[string]*line
	keys  map[string]*line
}

// line is one forge with one token.
type line struct {
	Connection
	boxes map[string]*box
	turns []string
	failure
}

// failure is the state after failed deliveries.
type failure struct {
	tries int
	until time.Time
	// outside: a condition outside the operator must change first, such as the token.
	outside bool
	// never: the forge refused permanently.
	never  bool
	denied Denial
	text   string
}

// box has the work and the memory of one key.
type box struct {
	// begun: this process has had marks of the key before. So it knows every post about a new context.
	begun  bool
	marks  []Mark
	handed time.Time
	known  map[contextKey]*memory
}

// contextKey identifies one context of one commit.
type contextKey struct{ sha, context string }

// memory has the facts that this process knows about a context.
type memory struct {
	// own are the statements that this process has seen in marks as accepted or being posted.
	own []Statement
	// shows is the status that the forge shows; an empty statement: none. It is nil if the status is not known:
	// before the first read, after a lost answer, and after another process has begun a post.
	shows *Statement
	// doubted: the mark contradicts the facts that this process knows, because it comes from a backup or another
	// process.
	doubted bool
	// posted: this process has posted since it last knew that the forge shows the statement of the mark. Its post
	// may have arrived late, and have replaced a post of another process. posted is also true if the mark was
	// lost with its status before the forge had a verdict.
	posted bool
	// since is when this process learned of a post of another process, or gave up its own. The post may still be
	// under way.
	since time.Time
	// result is the result that the marks do not have yet.
	result *Result
	failure
}

// NewDeliverer returns a Deliverer that posts nothing until Run.
func NewDeliverer(config DelivererConfig) *Deliverer {
	if config.Clock == nil {
		config.Clock = time.Now
	}
	if config.Notify == nil {
		config.Notify = func(string) {}
	}
	if config.Link == nil {
		config.Link = func(string, string) string { return "" }
	}
	return &Deliverer{config: config, queue: workqueue.NewTyped[string](), lines: map[string]*line{}, keys: map[string]*line{}}
}

// Run posts until the context ends, and returns when all workers have ended. It is called once.
// Statements that were not posted stay in the marks.
func (d *Deliverer) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, d.queue.ShutDown)()
	var workers sync.WaitGroup
	for range workersAtOnce {
		workers.Go(func() { d.work(ctx) })
	}
	workers.Wait()
}

// Connection is the forge of a line.
type Connection struct {
	// Provider is the kind of forge, and Forge the repository behind it.
	Provider string
	Forge    Forge
	// TargetURL is the link of the statuses.
	TargetURL string
}

// Connect sets the forge of a line. It is called again after the token has changed; refused statuses are then due
// again. If the repository changed, call Disconnect first.
func (d *Deliverer) Connect(name string, to Connection) {
	d.mu.Lock()
	l := d.lines[name]
	if l == nil {
		l = &line{boxes: map[string]*box{}}
		d.lines[name] = l
	}
	l.Connection = to
	d.mu.Unlock()
	d.Retry(name)
}

// Disconnect drops everything about a line.
func (d *Deliverer) Disconnect(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lines[name]
	if l == nil {
		return
	}
	for key := range l.boxes {
		delete(d.keys, key)
	}
	delete(d.lines, name)
}

// Retry makes all statuses of a line due that the forge did not accept. In contexts with a foreign status, the forge
// is read again.
func (d *Deliverer) Retry(name string) {
	d.mu.Lock()
	var keys []string
	if l := d.lines[name]; l != nil && l.forgive() {
		keys = slices.Clone(l.turns)
	}
	d.mu.Unlock()
	for _, key := range keys {
		d.config.Notify(key)
	}
}

// Replace treats the foreign statuses of a line as the operator's own, so that the live commits get their statuses
// again.
func (d *Deliverer) Replace(name string) {
	d.mu.Lock()
	var keys []string
	if l := d.lines[name]; l != nil {
		for key, b := range l.boxes {
			for m, k := range b.foreign() {
				k.own = append(k.own, *m.Foreign)
				k.doubted, k.result = true, nil
				keys = append(keys, key)
			}
		}
	}
	d.mu.Unlock()
	for _, key := range keys {
		d.config.Notify(key)
	}
}

// forgive clears failures, doubts foreign statuses, and reports whether there were any.
func (l *line) forgive() bool {
	found := l.tries > 0
	l.failure = failure{}
	for _, b := range l.boxes {
		for _, known := range b.known {
			found = found || known.tries > 0
			known.failure = failure{}
		}
		for _, known := range b.foreign() {
			found = true
			known.doubted, known.result = true, nil
		}
	}
	return found
}

// foreign are the marks with a foreign status.
func (b *box) foreign() iter.Seq2[Mark, *memory] {
	return func(yield func(Mark, *memory) bool) {
		for _, m := range b.marks {
			if m.Foreign != nil && !yield(m, b.known[contextKey{m.SHA, m.Context}]) {
				return
			}
		}
	}
}

// Refused reports whether a line is held until a condition outside the operator changes, such as its token.
func (d *Deliverer) Refused(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lines[name]
	if l == nil {
		return false
	}
	if l.outside {
		return true
	}
	for _, b := range l.boxes {
		for _, k := range b.known {
			if k.outside {
				return true
			}
		}
	}
	return false
}

// Enqueue replaces the marks of a key that are to be posted, and returns at once. The line is connected. began are
// the posts that this process begins now; their marks have just been stored. It returns the time after which Enqueue
// must be called again, because a status is due then; zero: never.
func (d *Deliverer) Enqueue(name, key string, marks, began []Mark) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lines[name]
	if l == nil {
		return 0
	}
	if other := d.keys[key]; other != nil && other != l {
		other.drop(key)
	}
	d.keys[key] = l
	b := l.boxes[key]
	if b == nil {
		b = &box{known: map[contextKey]*memory{}}
		l.boxes[key] = b
		l.turns = append(l.turns, key)
	}
	now := d.config.Clock()
	b.take(marks, began, now)
	d.queue.Add(name)
	return l.wait(b, now)
}

// take replaces the marks of the box. It keeps the facts about rememberedLimit other marks, because a backup may
// restore them, and a post may be under way. A late result is kept until it is in a mark.
func (b *box) take(marks, began []Mark, now time.Time) {
	known := make(map[contextKey]*memory, len(marks))
	for _, m := range marks {
		id := contextKey{m.SHA, m.Context}
		k := b.known[id]
		if k == nil {
			k = &memory{}
			switch {
			case m.Accepted != nil:
				k.since = now
			case b.begun:
				k.shows = &Statement{}
			}
		}
		known[id] = k
		repeated := m.Posting != nil && k.owns(*m.Posting)
		k.see(m)
		begins := index(began, m.SHA, m.Context) >= 0
		if k.result != nil && (begins || !k.result.about(m) || k.result.enter(m) == m) {
			k.result = nil
		}
		switch i := index(b.marks, m.SHA, m.Context); {
		case begins:
			k.since, k.never = time.Time{}, false
		case m.Posting != nil && (i < 0 || !sameWords(said(b.marks[i].Posting), *m.Posting)):
			k.since, k.shows, k.doubted = now, nil, repeated
		case m.Posting == nil && k.posted && !k.certain() && i >= 0 && b.marks[i].Posting != nil:
			k.since = now // another process has settled the possible post of this one
		}
		k.doubted = k.doubted || k.result == nil && k.shows != nil && !sameWords(*k.shows, said(cmp.Or(m.Foreign, m.Accepted)))
		k.posted = k.posted && (!k.certain() || k.result != nil || m.Posting != nil)
	}
	handed, remembered := len(marks), 0
	marks = slices.Clone(marks)
	for id, k := range b.known {
		if known[id] != nil || len(k.own) == 0 {
			continue
		}
		i := index(b.marks, id.sha, id.context)
		if i >= 0 && handed < KeptLimit && Last(b.marks[i]) != nil && (!Delivered(b.marks[i]) || !Judged(b.marks[i])) {
			k.posted = true // Prune would have kept the mark, so it is lost with its status, and no other object names the commit
		}
		late := k.result != nil && k.result.late()
		switch unsure := k.posted && (k.result == nil || State(k.result.Shows.State) == Pending); {
		case i >= 0 && unsure: // the forge is read for it although there is no mark
			marks = append(marks, Mark{SHA: id.sha, Context: id.context})
			if stated(b.marks[i]) != nil {
				k.since = now
			}
		case late: // the next reconcile enters it
		case remembered == rememberedLimit:
			continue
		default:
			remembered++
		}
		if k.doubted = true; i < 0 || Last(b.marks[i]) != nil { // after a failed read of a lost mark, the wait stays
			k.failure = failure{}
		}
		if !late {
			k.result = nil
		}
		known[id] = k
	}
	b.begun, b.marks, b.handed, b.known = b.begun || handed > 0, marks, now, known
}

// see stores the statements of a mark. Of statements with equal words, the newest is kept, because its content may
// differ.
func (k *memory) see(m Mark) {
	for _, s := range []*Statement{m.Accepted, m.Posting} {
		if s != nil {
			k.own = append(slices.DeleteFunc(k.own, func(own Statement) bool { return sameWords(own, *s) }), *s)
		}
	}
}

// owns reports whether this process knows a statement as the operator's.
func (k *memory) owns(s Statement) bool {
	return slices.ContainsFunc(k.own, func(own Statement) bool { return sameWords(own, s) })
}

// words returns the statement of the operator that the forge cut at its limit; if there is none, the statement that
// was read.
func (k *memory) words(limits provider, read Statement) Statement {
	for _, own := range slices.Backward(k.own) {
		if cut := limits.fit(own.Description); sameWords(read, Statement{State: own.State, Description: cut}) {
			read.Description = own.Description
			return read
		}
	}
	return read
}

// drop forgets a key.
func (l *line) drop(key string) {
	delete(l.boxes, key)
	l.turns = slices.DeleteFunc(l.turns, func(k string) bool { return k == key })
}

// Forget drops everything about a key whose object is deleted or reports nothing.
func (d *Deliverer) Forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.keys[key]; l != nil {
		l.drop(key)
		delete(d.keys, key)
	}
}

// Results returns the results of the posts of a key. Results stay until WithResults has written them into the marks,
// which every reconcile does first.
func (d *Deliverer) Results(key string) []Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.box(key)
	if b == nil {
		return nil
	}
	var out []Result
	for _, k := range b.known {
		if k.result != nil {
			out = append(out, *k.result)
		}
	}
	slices.SortFunc(out, func(a, b Result) int {
		return cmp.Or(strings.Compare(a.Of.SHA, b.Of.SHA), strings.Compare(a.Of.Context, b.Of.Context))
	})
	return out
}

func (d *Deliverer) box(key string) *box {
	l := d.keys[key]
	if l == nil {
		return nil
	}
	return l.boxes[key]
}

// Trouble is why a status was not accepted.
type Trouble struct {
	SHA, Context string
	// Text is the reason.
	Text string
	// Never: the forge refused permanently.
	Never bool
	// Denied is the problem of the token; "": the token is not the problem.
	Denied Denial
}

// About reports whether the trouble is about a mark.
func (t Trouble) About(m Mark) bool { return t.SHA == m.SHA && t.Context == m.Context }

// Troubles returns why statuses of a key were not accepted. held: the line pauses, because every request to its
// forge would fail; no new post should begin.
func (d *Deliverer) Troubles(key string) (troubles []Trouble, held bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.box(key)
	if b == nil {
		return nil, false
	}
	l := d.keys[key]
	for _, m := range b.marks {
		k := b.known[contextKey{m.SHA, m.Context}]
		t := Trouble{SHA: m.SHA, Context: m.Context}
		switch {
		case k == nil:
			continue
		case Delivered(m) || m.Foreign != nil || k.result != nil && m.Posting != nil && sameWords(k.result.Shows, *m.Posting):
			continue
		case k.text != "":
			t.Text, t.Never, t.Denied = k.text, k.never, k.denied
		case l.text != "":
			t.Text = l.text
		default:
			continue
		}
		troubles = append(troubles, t)
	}
	return troubles, l.until.After(d.config.Clock())
}

// delivery is one status that a worker posts to its forge.
type delivery struct {
	line  *line
	forge Forge
	key   string
	known *memory
	mark  Mark
	url   string
}

// work takes lines and posts one status of each until the context ends.
func (d *Deliverer) work(ctx context.Context) {
	for {
		name, stopped := d.queue.Get()
		if stopped || ctx.Err() != nil {
			return
		}
		next, stale := d.next(name)
		for _, key := range stale {
			d.config.Notify(key)
		}
		if next != nil {
			d.deliver(ctx, next)
			d.config.Notify(next.key)
			d.queue.Add(name)
		}
		d.queue.Done(name)
	}
}

// next returns the next status that a line posts; nil: none is due. It also returns the keys that must be enqueued
// again because they waited too long.
func (d *Deliverer) next(name string) (*delivery, []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.config.Clock()
	l := d.lines[name]
	if l == nil || l.until.After(now) {
		return nil, nil
	}
	var stale []string
	for _, posts := range []bool{true, false} {
		for range l.turns {
			key := l.turns[0]
			l.turns = append(l.turns[1:], key)
			b := l.boxes[key]
			m, known := b.due(now, posts)
			switch {
			case known == nil || slices.Contains(stale, key):
			case now.Sub(b.handed) >= beginWithin:
				stale = append(stale, key)
			default:
				return &delivery{line: l, forge: l.Forge, key: key, known: known, mark: m, url: l.TargetURL}, stale
			}
		}
	}
	return nil, stale
}

// due returns the first mark of a box that can be posted now; if posts is false, the first that can be read.
func (b *box) due(now time.Time, posts bool) (Mark, *memory) {
	for _, m := range b.marks {
		if k := b.known[contextKey{m.SHA, m.Context}]; posts == (m.Posting != nil) && k.pends(m) && k.open() && !k.after().After(now) {
			return m, k
		}
	}
	return Mark{}, nil
}

// pends reports whether a mark has a status to post, or a statement that this process cannot confirm. In the second
// case the forge is read although nothing may be owed.
func (k *memory) pends(m Mark) bool {
	return m.Posting != nil || (m.Accepted != nil || m.Foreign != nil || k.posted) && !k.certain()
}

// certain reports whether this process knows what the forge shows.
func (k *memory) certain() bool { return k.shows != nil && !k.doubted }

// open reports whether the status under way still needs an action.
func (k *memory) open() bool { return k.result == nil && !k.never }

// after is the earliest time of the next attempt.
func (k *memory) after() time.Time {
	if begun := k.since.Add(requestTimeout); !k.since.IsZero() && begun.After(k.until) {
		return begun
	}
	return k.until
}

// wait returns the time until a statement of a box is due without another event.
func (l *line) wait(b *box, now time.Time) time.Duration {
	first := time.Duration(0)
	for _, m := range b.marks {
		k := b.known[contextKey{m.SHA, m.Context}]
		if Delivered(m) && !k.pends(m) || !k.open() {
			continue
		}
		at := l.until
		next := k.after()
		if !k.pends(m) { // the post of the owed statement has not begun
			_, after := Due(l.Provider, m, now)
			next = now.Add(after)
		}
		if next.After(at) {
			at = next
		}
		if left := at.Sub(now); left > 0 && (first == 0 || left < first) {
			first = left
		}
	}
	return first
}

// deliver reads the forge if necessary, and posts.
func (d *Deliverer) deliver(ctx context.Context, next *delivery) {
	ctx, cancel := context.WithTimeout(ctx, deliverWithin)
	defer cancel()
	m := next.mark
	if m.Posting == nil {
		d.confirm(ctx, next)
		return
	}
	d.mu.Lock()
	certain := next.known.certain()
	if certain && sameWords(*next.known.shows, *m.Posting) {
		defer d.mu.Unlock()
		d.succeed(next)
		return
	}
	d.mu.Unlock()
	if !certain && !d.read(ctx, next) {
		return
	}
	d.mu.Lock()
	next.known.posted = true
	d.mu.Unlock()
	err := next.forge.Post(ctx, Status{
		SHA: m.SHA, Context: m.Context, State: State(m.Posting.State), Description: m.Posting.Description, TargetURL: cmp.Or(next.url, d.config.Link(next.key, m.SHA)),
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		if asDeliveryError(err).Uncertain {
			next.known.shows = nil
		}
		if errors.Is(err, context.DeadlineExceeded) {
			next.known.since = d.config.Clock() // the forge may still receive the post
		}
		d.fail(ctx, next, err)
		return
	}
	d.succeed(next)
}

// read reads the forge and reports whether the status must still be posted.
func (d *Deliverer) read(ctx context.Context, next *delivery) bool {
	found, ok, err := Latest(ctx, next.forge, next.mark.SHA, next.mark.Context)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.fail(ctx, next, err)
		return false
	}
	if !ok {
		return d.learn(next, nil)
	}
	return d.learn(next, &found)
}

// confirm reads the status that the forge shows for a mark without a post. It also reads those of all other marks of
// the line about the same commit that this process has not read yet.
func (d *Deliverer) confirm(ctx context.Context, next *delivery) {
	sha := next.mark.SHA
	d.mu.Lock()
	contexts := []string{next.mark.Context}
	for _, other := range next.line.unread(sha) {
		if !slices.Contains(contexts, other.mark.Context) {
			contexts = append(contexts, other.mark.Context)
		}
	}
	d.mu.Unlock()
	shown, err := next.forge.Shown(ctx, sha, contexts)
	var keys []string
	d.mu.Lock()
	if err != nil {
		d.fail(ctx, next, err)
		// If the forge refuses, such as for a commit that it no longer has, it is not asked again before the next
		// post.
		next.known.outside, next.known.never = false, next.known.outside || next.known.never
	}
	for _, read := range next.line.unread(sha) {
		if found, ok := shown[read.mark.Context]; ok {
			d.learn(read, found)
			keys = append(keys, read.key)
		} else if err != nil {
			read.known.failure = next.known.failure
		}
	}
	d.mu.Unlock()
	for _, key := range keys {
		if key != next.key {
			d.config.Notify(key)
		}
	}
}

// unread are the marks of a line about a commit that have nothing to post, and whose statements this process cannot
// confirm.
func (l *line) unread(sha string) []*delivery {
	var unread []*delivery
	for _, key := range l.turns {
		b := l.boxes[key]
		for _, m := range b.marks {
			if k := b.known[contextKey{m.SHA, m.Context}]; m.SHA == sha && m.Posting == nil && k.pends(m) && k.open() {
				unread = append(unread, &delivery{line: l, key: key, known: k, mark: m})
			}
		}
	}
	return unread
}

// learn enters the status that the forge shows; nil: none. It reports whether the status must still be posted. The
// lock is held.
func (d *Deliverer) learn(next *delivery, found *Status) bool {
	shows := Statement{}
	if found != nil {
		shows = next.known.words(providers()[next.line.Provider], found.statement())
	}
	next.known.posted = next.known.posted && stated(next.mark) != nil
	d.show(next, shows)
	return next.known.result == nil && next.mark.Posting != nil
}

// show enters the status that the forge shows, and a result if it differs from the mark. The lock is held.
func (d *Deliverer) show(next *delivery, shows Statement) {
	m, k := next.mark, next.known
	r := &Result{Of: m, Shows: shows, At: fullSeconds(d.config.Clock())}
	known := sameWords(shows, said(m.Accepted)) || sameWords(shows, said(m.Posting))
	r.Newer = k.owns(shows) && (!known || k.doubted && m.Posting != nil)
	if i := slices.IndexFunc(k.own, func(own Statement) bool { return sameWords(own, shows) }); i >= 0 && r.late() {
		r.Shows = k.own[i] // a newer commit may have the same content
	}
	k.shows, k.doubted, k.since, k.result = &shows, false, time.Time{}, nil
	if r.enter(m) != m {
		k.result = r
	}
	if sameWords(shows, said(m.Posting)) {
		k.failure, next.line.failure = failure{}, failure{}
	}
}

// statement converts a status that was read into the form of a mark.
func (s Status) statement() Statement {
	return Statement{State: string(s.State), Description: s.Description}
}

// succeed records that the forge has the posted status. The lock is held.
func (d *Deliverer) succeed(next *delivery) {
	next.known.doubted = false
	d.show(next, *next.mark.Posting)
}

// fail stores a failed delivery. The wait doubles with every failure in a row, and is never shorter than the wait
// that the forge asked for. The lock is held.
func (d *Deliverer) fail(ctx context.Context, next *delivery, err error) {
	m, k := next.mark, next.known
	trouble := asDeliveryError(err)
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return // the process ends: nothing is known about the forge
	}
	at := &k.failure
	if trouble.Everyone {
		at = &next.line.failure
	}
	at.tries++
	at.text, at.denied = trouble.Reason, trouble.Denied
	at.outside, at.never = trouble.Permanent && trouble.RetryAfter > 0, trouble.Permanent && trouble.RetryAfter == 0
	at.until = d.config.Clock().Add(max(backoff(at.tries), trouble.RetryAfter))
	if k.certain() && m.Posting != nil {
		// No new attempt begins before the marks are enqueued again, because they may owe another status by now.
		k.result = &Result{Of: m, Shows: *k.shows, At: fullSeconds(d.config.Clock())}
	}
}

// backoff returns the wait after the given number of failures in a row.
func backoff(failures int) time.Duration {
	wait := firstBackoff
	for ; failures > 1 && wait < lastBackoff; failures-- {
		wait *= 2
	}
	return min(wait, lastBackoff)
}
