package notifybc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
	"fanfare.dev/fanfare/internal/people"
)

// answerLink answers a route that people open as a link: with a text, or a redirect.
func (x *Exchange) answerLink(channel string, texts *settings.Answer, err error) error {
	status, text := http.StatusOK, texts.SuccessMessage
	if err != nil {
		status, text = x.api.failure(x.Request, err).Status, texts.FailureMessage
	}
	if texts.RedirectURL != "" {
		target, wrong := url.Parse(texts.RedirectURL)
		if wrong != nil {
			return wrong
		}
		q := target.Query()
		q.Set("channel", channel)
		if err != nil {
			q.Set("err", http.StatusText(status))
		}
		target.RawQuery = q.Encode()
		http.Redirect(x.Writer, x.Request, target.String(), http.StatusFound)
		return nil
	}
	x.Writer.Header().Set("Content-Type", "text/plain; charset=utf-8")
	x.Writer.WriteHeader(status)
	_, _ = x.Writer.Write([]byte(text)) // the client may be gone
	return nil
}

// verify confirms a subscription.
func (a *API) verify(x *Exchange) error {
	ctx, q := x.Request.Context(), x.Request.URL.Query()
	s, err := a.change(ctx, x.Request.PathValue("id"), func(s *subscription) ([]*subscription, error) {
		if s.state == stateDeleted {
			return nil, errRefused
		}
		if _, asked := s.members["confirmationRequest"]; asked {
			want, _ := s.confirmation().text("confirmationCode")
			if err := a.guesses.check(s.id, a.Clock.Now(), sameText(want, q.Get("confirmationCode"))); err != nil {
				return nil, err
			}
		}
		var list []*subscription
		if isTrue(q.Get("replace")) {
			same := people.SubscriptionFilter{Topic: topicName(s.serviceName), Channel: a.ourChannel(s.channel), Subscriber: s.address, State: people.StateActive}
			err := a.each(ctx, same, func(other *subscription) bool {
				if other.id != s.id {
					other.state = stateDeleted
					x.stamp(other.members, "updated", "updatedBy")
					list = append(list, other)
				}
				return len(list) < maxTogether
			})
			if err != nil {
				return nil, err
			}
		}
		s.state = stateConfirmed
		x.stamp(s.members, "updated", "updatedBy")
		return append(list, s), nil
	})
	return a.answered(x, s, err, func(texts *settings.Subscription) *settings.Answer { return &texts.ConfirmationAcknowledgements })
}

// maxTogether is the maximum number of subscriptions that one link changes.
const maxTogether = 1000

// answered answers a link of a subscription, which is nil if it was not found.
func (a *API) answered(x *Exchange, s *subscription, err error, choose func(*settings.Subscription) *settings.Answer) error {
	channel, name := channelEmail, ""
	if s != nil {
		channel, name = s.channel, s.serviceName
	}
	return x.answerLink(channel, choose(a.subscriptionSettings(name)), err)
}

// mayUnsubscribe returns the error for a caller who may not end a subscription.
func (a *API) mayUnsubscribe(x *Exchange, s *subscription) error {
	q := x.Request.URL.Query()
	switch {
	case x.Caller.Role == roles.User && s.userID() != x.Caller.SecurityID:
		return errMissing
	case s.state != stateConfirmed:
		return errRefused
	case x.Caller.Role != roles.Anonymous:
		return nil
	case q.Get("userChannelId") != "" && !strings.EqualFold(q.Get("userChannelId"), s.address):
		return errRefused
	}
	return a.checkCode(x, s)
}

// checkCode refuses a caller without the code of the subscription.
func (a *API) checkCode(x *Exchange, s *subscription) error {
	if s.code() == "" {
		return nil
	}
	return a.guesses.check(s.id, a.Clock.Now(), sameText(s.code(), x.Request.URL.Query().Get("unsubscriptionCode")))
}

// unsubscribe ends a subscription, and on request those of other services.
func (a *API) unsubscribe(x *Exchange) error {
	s, err := a.end(x)
	return a.answered(x, s, err, func(texts *settings.Subscription) *settings.Answer {
		return &texts.Unsubscription.Acknowledgements.OnScreen
	})
}

// end ends the subscription of a request, and tells its owner.
func (a *API) end(x *Exchange) (*subscription, error) {
	ctx := x.Request.Context()
	var names []string
	s, err := a.change(ctx, x.Request.PathValue("id"), func(s *subscription) ([]*subscription, error) {
		if err := a.mayUnsubscribe(x, s); err != nil {
			return nil, err
		}
		list, err := a.additional(ctx, s, additionalServices(x.Request.URL.Query()))
		if err != nil {
			return nil, err
		}
		names = []string{s.serviceName}
		var others, ids []string
		for _, other := range list {
			others, ids = append(others, other.serviceName), append(ids, other.id)
			other.state = stateDeleted
			x.stamp(other.members, "updated", "updatedBy")
		}
		if len(list) > 0 {
			s.members.set("unsubscribedAdditionalServices", map[string]any{"names": without(others), "ids": ids})
		}
		names = without(append(names, others...))
		s.state = stateDeleted
		x.stamp(s.members, "updated", "updatedBy")
		return append(list, s), nil
	})
	if err == nil {
		a.acknowledge(x, s, names)
	}
	return s, err
}

// additionalServices returns the parameter of that name, which is repeated, has brackets, or is separated by commas.
func additionalServices(q url.Values) (names []string) {
	for _, value := range append(q["additionalServices"], q["additionalServices[]"]...) {
		for name := range strings.SplitSeq(value, ",") {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// additional returns the confirmed subscriptions of the same channel and address in other services.
func (a *API) additional(ctx context.Context, s *subscription, names []string) (list []*subscription, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	all := len(names) == 1 && names[0] == "_all"
	err = a.each(ctx, people.SubscriptionFilter{Channel: a.ourChannel(s.channel), Subscriber: s.address, State: people.StateActive}, func(other *subscription) bool {
		if other.id != s.id && (all || slices.Contains(names, other.serviceName)) {
			list = append(list, other)
		}
		return len(list) < maxTogether
	})
	return list, err
}

// acknowledge tells a person that subscriptions have ended. A failure changes nothing.
func (a *API) acknowledge(x *Exchange, s *subscription, names []string) {
	texts := a.subscriptionSettings(s.serviceName)
	message := texts.Unsubscription.Acknowledgements.Notification.Of(s.channel)
	if message == nil || message.TextBody == "" && message.HTMLBody == "" {
		return
	}
	if err := a.sendTo(x.Request.Context(), s, message, x.httpHost(), names); err != nil {
		a.Logger.Warn("the message about the end of a subscription could not be sent", "subscription", s.id, "error", err)
	}
}

// undoUnsubscribe confirms a deleted subscription again, with those that ended with it.
func (a *API) undoUnsubscribe(x *Exchange) error {
	ctx := x.Request.Context()
	s, err := a.change(ctx, x.Request.PathValue("id"), func(s *subscription) ([]*subscription, error) {
		if !x.Caller.IsAdmin() {
			if x.Caller.Role == roles.User || s.state != stateDeleted {
				return nil, errRefused
			}
			if err := a.checkCode(x, s); err != nil {
				return nil, err
			}
		}
		var ended struct{ IDs []string }
		if raw, ok := s.members["unsubscribedAdditionalServices"]; ok {
			_ = json.Unmarshal(raw, &ended) // a client may have stored anything
		}
		var list []*subscription
		for _, id := range ended.IDs[:min(len(ended.IDs), maxTogether)] {
			other, err := a.find(ctx, id)
			if errors.Is(err, errMissing) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if other.state == stateDeleted {
				other.state = stateConfirmed
				x.stamp(other.members, "updated", "updatedBy")
				list = append(list, other)
			}
		}
		delete(s.members, "unsubscribedAdditionalServices")
		s.state = stateConfirmed
		x.stamp(s.members, "updated", "updatedBy")
		return append(list, s), nil
	})
	return a.answered(x, s, err, func(texts *settings.Subscription) *settings.Answer { return &texts.UndoUnsubscription })
}

// guessLimit limits the wrong codes of a subscription.
type guessLimit struct {
	mu    sync.Mutex
	wrong map[string]int // by subscription, since begin
	begin time.Time
}

const (
	maxGuesses    = 10
	guessWindow   = 10 * time.Minute
	maxGuessedIDs = 100_000
)

// check returns an error if a code is wrong, or if too many were.
func (g *guessLimit) check(id string, now time.Time, right bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.begin) > guessWindow || len(g.wrong) > maxGuessedIDs {
		g.begin, g.wrong = now, map[string]int{}
	}
	if right && g.wrong[id] < maxGuesses {
		return nil
	}
	g.wrong[id]++
	return errRefused
}
