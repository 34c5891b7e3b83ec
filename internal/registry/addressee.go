package registry

import (
	"context"
	"slices"

	"fanfare.dev/fanfare"
)

// An Addressee is an address that somebody wants to write to, and the
// subscriber who has it.
type Addressee struct {
	Address string        // normal form, once it was found
	Place   fanfare.Place // 0: nobody has it yet
	Err     error         // *fanfare.Error: it is no address of the channel's form
}

// FindAddressees looks for the subscribers behind addresses in the form of a
// channel. It changes nothing but its argument: a wrong address gets its own
// error, with the pointer /to.
func (r *Registry) FindAddressees(ctx context.Context, service string, channel *Channel, all []Addressee) error {
	svc, err := r.config.Load().service(service)
	if err != nil {
		return err
	}
	candidates := make(map[fanfare.Place][]int, len(all))
	var places []fanfare.Place
	for i := range all {
		a := &all[i]
		w := want{channel: channel}
		if a.Err = r.checkAddress(svc, &Put{To: a.Address}, &w); a.Err != nil {
			continue
		}
		a.Address = w.address
		first, others := r.addresses.lookup(r.hash.address(svc.number, w.kind, w.address))
		for _, p := range append([]fanfare.Place{first}, others...) {
			if p != 0 {
				candidates[p] = append(candidates[p], i)
				places = append(places, p)
			}
		}
	}
	kind := kindOf(channel.Driver)
	err = r.opt.Store.SubscriberRecords(ctx, sorted(places), func(s *SubscriberRecord) error {
		for _, i := range candidates[s.Place] {
			if a := &all[i]; s.Service == svc.number && s.Kind == kind && s.Address == a.Address {
				a.Place = s.Place
			}
		}
		return nil
	})
	if err != nil {
		return r.unreadable(err)
	}
	return nil
}

// MakeAddressees makes a subscriber for each address that was found to have
// none, and is durable when it returns. The error means that nothing was kept.
func (r *Registry) MakeAddressees(ctx context.Context, service string, channel *Channel, all []Addressee) error {
	svc, err := r.config.Load().service(service)
	if err != nil {
		return err
	}
	missing := make([]int, 0, len(all))
	for i := range all {
		if all[i].Err == nil && all[i].Place == 0 {
			missing = append(missing, i)
		}
	}
	for some := range slices.Chunk(missing, maxJob) {
		j := &job{svc: svc, people: true, wants: make([]want, len(some))}
		for k, i := range some {
			w := &j.wants[k]
			*w = want{put: &Put{To: all[i].Address}, channel: channel, service: svc.number}
			if w.err = r.checkAddress(svc, w.put, w); w.err == nil {
				w.addressHash = r.hash.address(svc.number, w.kind, w.address)
			}
		}
		if err := r.writer.submit(ctx, j); err != nil {
			return err
		}
		for k, i := range some {
			all[i].Place, all[i].Err = j.wants[k].place, j.wants[k].err
		}
	}
	return nil
}

// people finds or makes the subscriber of each want, and nothing else.
func (g *group) people(j *job) {
	for i := range j.wants {
		w := &j.wants[i]
		if w.err != nil {
			continue
		}
		w.place, _, w.err = g.owner(w)
		if g.aborted {
			w.err = nil // it will be decided on anew
			return
		}
	}
}
