package sends

import (
	"context"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store/control"
)

// An erasure is a person whose rows are removed.
type erasure struct {
	service string
	places  []fanfare.RowID // ascending
	names   []string        // addresses and ids, in lower case
}

// has reports whether a row is about the person.
func (o *erasure) has(r *storedRow) bool {
	if r.Place != 0 && slices.Contains(o.places, r.Place) {
		return true
	}
	for _, text := range [...]string{r.To, r.Subscriber, r.Address} {
		if text != "" && slices.Contains(o.names, strings.ToLower(text)) {
			return true
		}
	}
	return false
}

// eraseFrom removes the content of a row if it is about an erased person.
func eraseFrom(r *storedRow, all []erasure) bool {
	for i := range all {
		if all[i].has(r) {
			*r = storedRow{Row: r.Row, Erased: true, Errors: nil}
			return true
		}
	}
	return false
}

// eraseErrors removes errors that name an erased person.
func eraseErrors(list []wire.SendError, all []erasure) []wire.SendError {
	if len(all) == 0 {
		return list
	}
	for i := range list {
		text := strings.ToLower(list[i].Detail + "\n" + list[i].Hint)
		for k := range all {
			if slices.ContainsFunc(all[k].names, func(name string) bool { return strings.Contains(text, name) }) {
				list[i].Detail, list[i].Hint = "the person was erased", ""
			}
		}
	}
	return list
}

// Erase removes the rows of a person from the lists of a service. names are the addresses and ids of the person in lower case, places the row ids of the addresses.
func (s *Sends) Erase(ctx context.Context, service string, places []fanfare.RowID, names []string) error {
	of := []erasure{{service, places, names}}
	s.mu.Lock()
	for _, u := range s.erasing {
		if u.send.Service == service {
			u.mu.Lock()
			u.erased = append(u.erased, of...)
			u.mu.Unlock()
		}
	}
	s.mu.Unlock()
	for _, e := range s.ofService(service) {
		if err := s.eraseSend(ctx, e.id, of); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sends) ofService(service string) (list []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.byID {
		if e.service == service {
			list = append(list, e)
		}
	}
	return list
}

// eraseSend removes people from all uploads of a send.
func (s *Sends) eraseSend(ctx context.Context, id string, of []erasure) error {
	err := s.eachRow(ctx, id, func(chunk *control.SendRows, rows []storedRow) error {
		changed := false
		for i := range rows {
			changed = eraseFrom(&rows[i], of) || changed
		}
		if !changed {
			return nil
		}
		var err error
		if chunk.Rows, err = pack(rows); err != nil {
			return err
		}
		return s.Store.EraseSendRows(ctx, chunk)
	})
	if err != nil {
		return err
	}
	pages, err := s.Store.SendErrorPages(ctx, id)
	if err != nil {
		return err
	}
	for i := range pages {
		list, err := unpack[wire.SendError](pages[i].Errors)
		if err != nil {
			return err
		}
		was := slices.Clone(list)
		if list = eraseErrors(list, of); slices.Equal(was, list) {
			continue
		}
		if pages[i].Errors, err = pack(list); err != nil {
			return err
		}
		if err := s.Store.EraseSendErrors(ctx, &pages[i]); err != nil {
			return err
		}
	}
	return nil
}

// eachRow visits the chunks of all uploads of a send.
func (s *Sends) eachRow(ctx context.Context, id string, visit func(chunk *control.SendRows, rows []storedRow) error) error {
	chunks, err := s.Store.SendChunks(ctx, id)
	if err != nil {
		return err
	}
	for i := range chunks {
		blob, err := s.Store.SendRows(ctx, id, chunks[i].Upload, chunks[i].Chunk)
		if err != nil {
			return err
		}
		if blob == nil { // the upload was replaced meanwhile
			continue
		}
		rows, err := unpack[storedRow](blob)
		if err != nil {
			return err
		}
		if err := visit(&chunks[i], rows); err != nil {
			return err
		}
	}
	return nil
}

// Export visits the rows of a person in the lists of a service, with the ids of their sends.
func (s *Sends) Export(ctx context.Context, service string, places []fanfare.RowID, names []string, visit func(send string, row wire.SendRow) error) error {
	of := erasure{service, places, names}
	for _, e := range s.ofService(service) {
		err := s.eachRow(ctx, e.id, func(_ *control.SendRows, rows []storedRow) error {
			for i := range rows {
				if !of.has(&rows[i]) {
					continue
				}
				if err := visit(e.id, rows[i].wire()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
