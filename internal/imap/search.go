package imap

import (
	"slices"

	"fanfare.dev/fanfare/internal/imap/search"
	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/searchfilter"
)

// found are the messages that a search has found.
type found struct {
	numbers []uint32 // sequence numbers or UIDs
	uids    []mailbox.UID
	modSeqs []mailbox.ModSeq
}

func (s *session) search(c *syntax.Command) status {
	a := c.Args.(*syntax.Search)
	sel := s.selected
	saves := slices.Contains(a.Options, "SAVE")
	if a.Charset != "" && a.Charset != "UTF-8" && a.Charset != "US-ASCII" {
		if saves {
			sel.saved = nil
		}
		return no("BADCHARSET (US-ASCII UTF-8)", "the character set is not supported: use UTF-8")
	}
	byModSeq := false
	a.Key.Walk(func(k *syntax.Key) { byModSeq = byModSeq || k.Kind == syntax.KeyModSeq })
	if byModSeq {
		s.enableCondstore()
	}
	result, err := s.evaluate(a.Key, c.UID)
	if err != nil {
		if saves {
			sel.saved = nil
		}
		return s.failure(err)
	}
	if saves {
		sel.saved = result.saved(a.Options)
	}
	if a.Return || s.rev2 {
		s.extendedResult(c, a, result, byModSeq)
	} else {
		s.plainResult(result, byModSeq)
	}
	return ok("SEARCH completed")
}

// evaluate evaluates a search.
func (s *session) evaluate(key *syntax.Key, isUID bool) (*found, error) {
	sel := s.selected
	latest, err := sel.handle.Latest(s.ctx)
	if err != nil {
		return nil, err
	}
	limits := search.Limits{Now: s.server.o.Clock.Now(), LastSeq: uint32(len(sel.uids)), Saved: sel.saved}
	if n := len(sel.uids); n > 0 {
		limits.LastUID = uint32(sel.uids[n-1])
	}
	query := search.New(key, limits)
	result := &found{}
	filters := s.server.o.Store.SearchReader(len(sel.uids), func(i int) mailbox.ContentID {
		if m, _ := sel.message(latest, sel.uids[i]); m != nil {
			return m.Content
		}
		return 0
	})
	for i, uid := range sel.uids {
		m, _ := sel.message(latest, uid)
		if m == nil {
			continue
		}
		matches, err := query.Match(&search.Message{Seq: uint32(i + 1), Recent: sel.isRecent(uid), Message: m,
			Header:     func() ([]byte, bool, error) { return s.headerOf(m) },
			Content:    func() ([]byte, *mimetree.Part, error) { return s.contentOf(m) },
			MayContain: func(n searchfilter.Pattern) (bool, error) { return filters.MayContain(s.ctx, i, n) },
		})
		s.release()
		if err != nil {
			return nil, err
		}
		if !matches {
			continue
		}
		n := uint32(i + 1)
		if isUID {
			n = uint32(uid)
		}
		result.numbers = append(result.numbers, n)
		result.uids = append(result.uids, uid)
		result.modSeqs = append(result.modSeqs, m.ModSeq)
	}
	return result, nil
}

// saved returns the UIDs that SAVE stores: all, or with MIN and MAX only these (RFC 9051, section 6.4.4.1).
func (f *found) saved(options []string) (set syntax.NumSet) {
	hasMin, hasMax := slices.Contains(options, "MIN"), slices.Contains(options, "MAX")
	all := slices.Contains(options, "ALL") || slices.Contains(options, "COUNT") || !hasMin && !hasMax
	for i, uid := range f.uids {
		if all || hasMin && i == 0 || hasMax && i == len(f.uids)-1 {
			set.Add(uint32(uid))
		}
	}
	return set
}

// plainResult writes the SEARCH response of RFC 3501.
func (s *session) plainResult(f *found, byModSeq bool) {
	s.out = append(s.out, "* SEARCH"...)
	for _, n := range f.numbers {
		s.out = append(s.out, ' ')
		s.out = append(s.out, decimal(n)...)
	}
	if byModSeq && len(f.numbers) > 0 {
		s.out = append(s.out, " (MODSEQ "...)
		s.out = append(s.out, decimal(int64(slices.Max(f.modSeqs)))...)
		s.out = append(s.out, ')')
	}
	s.out = append(s.out, '\r', '\n')
}

// extendedResult writes the ESEARCH response (RFC 9051, section 7.3.4).
func (s *session) extendedResult(c *syntax.Command, a *syntax.Search, f *found, byModSeq bool) {
	options := a.Options
	if len(options) == 0 {
		options = []string{"ALL"}
	}
	if !slices.ContainsFunc(options, func(option string) bool { return option != "SAVE" }) {
		return
	}
	has := func(option string) bool { return slices.Contains(options, option) }
	s.out = append(s.out, "* ESEARCH (TAG "...)
	s.out = syntax.AppendString(s.out, c.Tag, true)
	s.out = append(s.out, ')')
	if c.UID {
		s.out = append(s.out, " UID"...)
	}
	n := len(f.numbers)
	if has("MIN") && n > 0 {
		s.out = append(s.out, " MIN "+decimal(f.numbers[0])...)
	}
	if has("MAX") && n > 0 {
		s.out = append(s.out, " MAX "+decimal(f.numbers[n-1])...)
	}
	if has("ALL") && n > 0 {
		var set syntax.NumSet
		for _, number := range f.numbers {
			set.Add(number)
		}
		s.out = append(s.out, " ALL "...)
		s.out = set.Append(s.out)
	}
	if has("COUNT") {
		s.out = append(s.out, " COUNT "+decimal(n)...)
	}
	if byModSeq && n > 0 {
		highest := slices.Max(f.modSeqs)
		if !has("ALL") && !has("COUNT") { // only the messages of MIN and MAX count (RFC 7162, section 3.1.5)
			highest = 0
			if has("MIN") {
				highest = f.modSeqs[0]
			}
			if has("MAX") {
				highest = max(highest, f.modSeqs[n-1])
			}
		}
		s.out = append(s.out, " MODSEQ "+decimal(int64(highest))...)
	}
	s.out = append(s.out, '\r', '\n')
}
