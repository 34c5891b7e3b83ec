package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/people"
)

// pauseRoutes stop what one subscription gets for a while.
func (a *API) pauseRoutes() {
	type one struct {
		Named
		ID      string `path:"id" doc:"of the subscription"`
		IfMatch string `header:"If-Match" doc:"change it only if it still has this ETag; else 412"`
	}
	type setter func(s Subscriptions, ctx context.Context, service, id string, check func(is *people.Subscription) error) error
	verb := func(name, summary, about string, set setter) {
		act(a, huma.Operation{OperationID: name + "-subscription", Method: http.MethodPost, Path: "/v1/subscriptions/{id}/" + name, Tags: []string{"subscriptions"},
			Summary: summary, Description: about}, maySubscribe,
			func(ctx context.Context, c caller, in *one) error {
				s, err := a.oneService(c)
				if err != nil {
					return err
				}
				x := ctx.Value(exchangeKey{}).(*responseWriter)
				httpio.AllowLongResponse(x)
				return set(a.deps.Subscriptions, ctx, s, in.ID, httpio.Preconditions[people.Subscription](x.request))
			})
	}
	verb("pause", "Pause a subscription", "No event that is accepted after the answer is for it, until it is resumed. Answers when no message for it can leave any more; "+
		"what waited to leave is not sent. It stays paused when it is put again without a state.", Subscriptions.PauseSubscription)
	verb("resume", "Resume a paused subscription", "Events that are accepted after the answer are matched against it again; those that were matched meanwhile are not caught up on. "+
		"Where its condition does not fit the topic any more it stays paused, and the answer is 409.", Subscriptions.ResumeSubscription)
}
