package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/people"
)

// pauseRoutes adds the endpoints that pause and resume a subscription.
func (a *API) pauseRoutes() {
	type one struct {
		Named
		ID      string `path:"id" doc:"id of the subscription"`
		IfMatch string `header:"If-Match" doc:"change it only if it still has this ETag; otherwise 412"`
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
	verb("pause", "Pause a subscription", "Events accepted after the response do not match it until it is resumed. The response is sent when no further message for it can be sent; "+
		"waiting messages are not sent. It stays paused if it is put again without a state.", Subscriptions.PauseSubscription)
	verb("resume", "Resume a paused subscription", "Events accepted after the response are matched against it again; it does not get the events that were matched while it was paused. "+
		"If its condition no longer fits the topic, it stays paused and the response is 409.", Subscriptions.ResumeSubscription)
}
