package notifybc

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/mail/bounce"
)

// The local parts of NotifyBC's addresses, in mails that it sent before its records were imported: un-ID-CODE unsubscribes, and bounces
// come back to bn-ID-CODE.
const (
	unsubscribePrefix = "un-"
	bouncePrefix      = "bn-"
)

// splitLocal splits a local part. It reports whether the part has the form of an address of NotifyBC.
func splitLocal(local string) (kind bounce.Kind, id, code string, ok bool) {
	lower := strings.ToLower(local)
	switch {
	case strings.HasPrefix(lower, unsubscribePrefix):
		kind = bounce.Unsubscribe
	case strings.HasPrefix(lower, bouncePrefix):
		kind = bounce.Bounce
	default:
		return 0, "", "", false
	}
	id, code, ok = strings.Cut(local[len(unsubscribePrefix):], "-")
	return kind, id, code, ok && id != ""
}

// subscriptionOf returns the subscription of an address of NotifyBC; nil if the address is not one. Mail servers may change the case of
// addresses.
func (a *API) subscriptionOf(ctx context.Context, local string) (s *subscription, kind bounce.Kind, err error) {
	kind, id, code, ok := splitLocal(local)
	if !ok {
		return nil, 0, nil
	}
	s, err = a.find(ctx, strings.ToLower(id))
	if errors.Is(err, errMissing) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if a.guesses.check(s.id, a.Clock.Now(), sameText(strings.ToLower(s.code()), strings.ToLower(code))) != nil {
		return nil, 0, nil //nolint:nilerr // mail with a wrong code is dropped
	}
	return s, kind, nil
}

// KnowsAddress reports whether mail to a local part is about a subscription, and of which kind it is.
func (a *API) KnowsAddress(ctx context.Context, local string) (kind bounce.Kind, known bool, err error) {
	s, kind, err := a.subscriptionOf(ctx, local)
	return kind, s != nil, err
}

// TakeMail processes mail to an address of NotifyBC. It reports whether the mail was one.
func (a *API) TakeMail(ctx context.Context, arrival bounce.Arrival) (taken bool, err error) {
	local, _, _ := strings.Cut(arrival.To, "@")
	if _, _, _, ok := splitLocal(local); !ok || arrival.Delivery != (fanfare.DeliveryRef{}) {
		return false, nil
	}
	s, kind, err := a.subscriptionOf(ctx, local)
	if err != nil || s == nil {
		return true, err
	}
	if kind == bounce.Unsubscribe {
		return true, a.unsubscribeByMail(ctx, s)
	}
	reports := arrival.Reports
	if reports == nil {
		reports = bounce.Parse(arrival.Raw)
	}
	for i := range reports {
		r := &reports[i]
		if r.Outcome != bounce.Failed || r.Class != fanfare.ClassInvalid || a.Bounces == nil {
			continue
		}
		id := sha256.Sum256(arrival.Raw) // the mail has no id of ours
		if err := a.Suppressor.Bounced(ctx, a.Settings.Service, s.address, binary.BigEndian.Uint64(id[:]), r, &arrival); err != nil {
			return true, err
		}
		return true, a.Bounced(ctx, &Bounce{Address: s.address, Text: r.Text, ID: hex.EncodeToString(id[:12]), At: arrival.At})
	}
	return true, nil
}

// unsubscribeByMail ends a subscription as its link does. It is idempotent.
func (a *API) unsubscribeByMail(ctx context.Context, s *subscription) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/?unsubscriptionCode="+url.QueryEscape(s.code()), http.NoBody)
	if err != nil {
		return err
	}
	r.SetPathValue("id", s.id)
	_, err = a.end(&Exchange{Request: r, Caller: roles.Caller{Role: roles.Anonymous}, api: a})
	if err == errRefused || err == errMissing { //nolint:errorlint // end returns them as they are
		return nil // it has ended in the meantime
	}
	return err
}
