package match

import "github.com/RoaringBitmap/roaring/v2"

// A filter is one distinct text and all subscriptions that have it: it is
// evaluated once per event, however many there are. The empty text is the
// condition that every event meets.
type filter struct {
	text   string
	number int // among the topic's filters, while it has subscriptions
	test   test
	paths  []*path
	places *roaring.Bitmap
}

// compileFilter returns the filter of text, yet without subscriptions.
func compileFilter(sc *scope, text string) (*filter, error) {
	fl := &filter{text: text, test: literalTest(true)}
	if text == "" {
		return fl, nil
	}
	a, err := sc.compile("/filter", text)
	if err != nil {
		return nil, err
	}
	b := builder{scope: sc, ast: a}
	fl.test = b.build(a.Expr())
	fl.paths = b.paths
	if b.err != nil {
		return nil, invalid("/filter", "%v", b.err)
	}
	return fl, nil
}

// maxDrafts is how many compiled filters are kept between the check of a text
// and the arrival of its first subscription. Beyond, all are dropped and
// compiled again when they come.
const maxDrafts = 16 << 10

// draft compiles a filter or takes it from those that were compiled before.
func (t *topic) draft(c *compiledTopic, text string) (*filter, error) {
	t.drafts.Lock()
	fl := t.drafts.byText[text]
	current := t.drafts.of == c
	t.drafts.Unlock()
	if fl != nil && current {
		return fl, nil
	}
	fl, err := compileFilter(c.filters, text)
	if err != nil {
		return nil, err
	}
	t.drafts.Lock()
	defer t.drafts.Unlock()
	if t.drafts.of != c || len(t.drafts.byText) >= maxDrafts {
		t.drafts.of, t.drafts.byText = c, map[string]*filter{}
	}
	t.drafts.byText[text] = fl
	return fl, nil
}

// undraft takes a filter out that is in the index now.
func (t *topic) undraft(text string) {
	t.drafts.Lock()
	defer t.drafts.Unlock()
	delete(t.drafts.byText, text)
}

// filters are those of a topic that have subscriptions.
type filters struct {
	byText map[string]*filter
	list   []*filter // by number; nil where one was dropped
	free   []int
}

// install makes fl one of the filters.
func (s *filters) install(fl *filter) {
	fl.number = len(s.list)
	if last := len(s.free) - 1; last >= 0 {
		fl.number, s.free = s.free[last], s.free[:last]
	} else {
		s.list = append(s.list, nil)
	}
	fl.places = roaring.New()
	s.list[fl.number], s.byText[fl.text] = fl, fl
}

// drop forgets fl, which has no subscription any more.
func (s *filters) drop(fl *filter) {
	delete(s.byText, fl.text)
	s.list[fl.number] = nil
	s.free = append(s.free, fl.number)
}
