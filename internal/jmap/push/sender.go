package push

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/mailbox"
)

const (
	lookInterval = 30 * time.Second // between two reads of the records
	recordsRead  = 500
	pushTimeout  = 20 * time.Second // of one request
	firstWait    = 2 * time.Second  // after a failure; each further wait is twice as long
	maxWait      = 10 * time.Minute
	minGap       = time.Second // between two messages of a subscription; changes in between become one message
	maxTTL       = 24 * time.Hour
	maxSending   = 64 // requests at the same time
)

// verify sends the verification code of a new subscription.
func (s *Subscriptions) verify(id mailbox.RecordID, one *subscription) {
	text, _ := json.Marshal(map[string]any{"@type": "PushVerification", "pushSubscriptionId": idOf(id), "verificationCode": one.Code}) // plain values: cannot fail
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, func(ctx context.Context) {
		if _, err := s.post(ctx, one, text); err != nil && ctx.Err() == nil {
			s.o.Logger.Info("cannot send the verification code of a push subscription", "error", err)
		}
	})
}

// Run sends verification codes, and the changes of accounts to verified subscriptions, until ctx ends. After a start, each subscription gets the state
// of its account, because changes may have been missed.
func (s *Subscriptions) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sending := make(chan struct{}, maxSending)
	active := map[mailbox.RecordPlace]func(){} // ends the sender of a subscription
	ended := make(chan mailbox.RecordPlace)
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		s.mu.Lock()
		pending := s.pending
		s.pending = nil
		s.mu.Unlock()
		for _, send := range pending {
			running.Go(func() {
				select {
				case sending <- struct{}{}:
					defer func() { <-sending }()
					send(ctx)
				case <-ctx.Done():
				}
			})
		}
		found, err := s.find(ctx)
		if err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("cannot read the push subscriptions; trying again", "error", err)
		}
		for _, place := range found {
			if active[place] != nil {
				continue
			}
			of, stop := context.WithCancel(ctx)
			active[place] = stop
			running.Go(func() {
				defer stop()
				s.follow(of, place, sending)
				select {
				case ended <- place:
				case <-ctx.Done():
				}
			})
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case place := <-ended:
				delete(active, place)
			case <-s.changed:
				waiting = false
			case <-ticker.C:
				waiting = false
			}
		}
	}
}

// find returns the verified subscriptions, and removes those that are not valid any more.
func (s *Subscriptions) find(ctx context.Context) (found []mailbox.RecordPlace, err error) {
	var last mailbox.RecordPlace
	for {
		list, err := s.o.Store.RecordsWithWork(ctx, mailbox.SubscriptionRecord, last, recordsRead)
		if err != nil {
			return found, err
		}
		for _, place := range list {
			last = place
			one, err := s.read(ctx, place)
			if err != nil {
				return found, err
			}
			if one != nil && one.Verified {
				found = append(found, place)
			}
		}
		if len(list) < recordsRead {
			return found, nil
		}
	}
}

// read returns a subscription, or nil if it does not exist any more. One that is not valid is removed.
func (s *Subscriptions) read(ctx context.Context, place mailbox.RecordPlace) (*subscription, error) {
	r, err := s.o.Store.Record(ctx, place.Account, mailbox.SubscriptionRecord, place.ID)
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	one, err := parseSubscription(&r)
	if err != nil {
		return nil, err
	}
	ok, err := s.valid(ctx, place.Account, one)
	if isGone(err) {
		return nil, nil
	}
	if err != nil || ok {
		return one, err
	}
	return nil, s.remove(ctx, place)
}

func (s *Subscriptions) remove(ctx context.Context, place mailbox.RecordPlace) error {
	if err := s.o.Store.RemoveRecord(ctx, place.Account, mailbox.SubscriptionRecord, place.ID); !isGone(err) {
		return err
	}
	return nil
}

// follow sends the changes of the account of a subscription until the subscription ends.
func (s *Subscriptions) follow(ctx context.Context, place mailbox.RecordPlace, sending chan struct{}) {
	watcher, err := Watch(ctx, s.o.Store, place.Account, nil, 0)
	if err != nil {
		return // the next look tries again
	}
	defer watcher.Stop()
	unsent := watcher.everything() // changes before the watch may have been missed
	wait := firstWait
	for {
		for retry := true; retry; {
			one, err := s.read(ctx, place)
			if err != nil || one == nil {
				return
			}
			change, err := watcher.Next(ctx)
			if errors.Is(err, ErrEnded) {
				_ = s.remove(ctx, place) // the next look tries again
				return
			}
			if err != nil {
				return
			}
			if unsent = newer(unsent, change); unsent == nil {
				break
			}
			select {
			case sending <- struct{}{}:
			case <-ctx.Done():
				return
			}
			gone, err := s.send(ctx, one, unsent)
			<-sending
			pause := minGap
			switch {
			case gone:
				s.o.Logger.Info("a push subscription was removed, because its URL does not exist any more", "account", place.Account)
				_ = s.remove(ctx, place)
				return
			case err != nil:
				pause, wait = wait, min(maxWait, 2*wait)
			default:
				unsent, retry, wait = nil, false, firstWait
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-watcher.Changed():
		case <-time.After(lookInterval): // whether the subscription ended
		}
	}
}

// newer merges two changes of an account.
func newer(old, change *StateChange) *StateChange {
	if old == nil || change == nil {
		if change == nil {
			return old
		}
		return change
	}
	for account, types := range old.Changed {
		for t, state := range types {
			if _, has := change.Changed[account][t]; !has {
				change.Changed[account][t] = state
			}
		}
	}
	return change
}

// send sends the types that a subscription wants. gone is true if the URL does not exist any more.
func (s *Subscriptions) send(ctx context.Context, one *subscription, change *StateChange) (gone bool, err error) {
	wanted := &StateChange{Type: change.Type, Changed: map[string]map[string]string{}}
	for account, types := range change.Changed {
		some := map[string]string{}
		for t, state := range types {
			if one.wants(t) {
				some[t] = state
			}
		}
		if len(some) > 0 {
			wanted.Changed[account] = some
		}
	}
	if len(wanted.Changed) == 0 {
		return false, nil
	}
	text, err := json.Marshal(wanted)
	if err != nil {
		return false, err
	}
	status, err := s.post(ctx, one, text)
	return status == http.StatusNotFound || status == http.StatusGone, err
}

func (s *subscription) wants(t string) bool {
	if s.Types == nil {
		return true
	}
	for _, one := range s.Types {
		if one == t {
			return true
		}
	}
	return false
}

// post sends a message to the URL of a subscription (RFC 8030, section 5). A status that is not 2xx is an error.
func (s *Subscriptions) post(ctx context.Context, one *subscription, text []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	body := text
	if one.Keys != nil {
		if body, err = one.Keys.encrypt(text); err != nil {
			return 0, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, one.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if one.Keys != nil {
		r.Header.Set("Content-Encoding", "aes128gcm")
	}
	r.Header.Set("TTL", fmt.Sprint(int(maxTTL/time.Second)))
	response, err := s.o.Client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the connection can be used again
	if response.StatusCode/100 != 2 {
		return response.StatusCode, fmt.Errorf("the push service answered %d", response.StatusCode)
	}
	return response.StatusCode, nil
}
