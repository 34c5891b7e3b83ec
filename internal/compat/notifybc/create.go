package notifybc

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/compat/notifybc/settings"
	"fanfare.dev/fanfare/internal/people"
)

func (a *API) subscriptionRoutes() []Route {
	return []Route{
		{http.MethodPost, "/subscriptions", Everyone, a.createSubscription},
		{http.MethodGet, "/subscriptions", SignedIn, a.listSubscriptions},
		{http.MethodGet, "/subscriptions/count", SignedIn, a.countSubscriptions},
		{http.MethodGet, "/subscriptions/services", SignedIn, a.listServices},
		{http.MethodPatch, "/subscriptions/{id}", SignedIn, a.patchSubscription},
		{http.MethodPut, "/subscriptions/{id}", Admins, a.replaceSubscription},
		{http.MethodDelete, "/subscriptions/{id}", Everyone, a.unsubscribe},
		{http.MethodGet, "/subscriptions/{id}/unsubscribe", Everyone, a.unsubscribe},
		{http.MethodPost, "/subscriptions/{id}/unsubscribe", Everyone, a.unsubscribe}, // one click, RFC 8058
		{http.MethodGet, "/subscriptions/{id}/unsubscribe/undo", Everyone, a.undoUnsubscribe},
		{http.MethodGet, "/subscriptions/{id}/verify", Everyone, a.verify},
	}
}

// createSubscription stores a new subscription, and sends the message with its code.
func (a *API) createSubscription(x *Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	s := &subscription{id: newID(a.Clock.Now())}
	delete(body, "id")
	if !x.Caller.IsAdmin() {
		delete(body, "state")
	}
	if err := s.take(body); err != nil {
		return err
	}
	x.stamp(s.members, "created", "createdBy")
	maps.Copy(s.members, Members{"updated": s.members["created"], "updatedBy": s.members["createdBy"]})
	message, err := a.prepare(x, s)
	if err != nil {
		return err
	}
	ctx := x.Request.Context()
	if message != nil && a.subscriptionSettings(s.serviceName).DetectDuplicatedSubscription {
		twice, err := a.isConfirmed(ctx, s)
		if err != nil {
			return err
		}
		if twice {
			message = a.subscriptionSettings(s.serviceName).DuplicatedNotification.Of(s.channel)
		}
	}
	if err := a.store(ctx, s); err != nil {
		return err
	}
	if err := a.confirm(x, s, message); err != nil {
		return err
	}
	return x.JSON(s.record(x.Caller.IsAdmin()))
}

// take sets the members of a subscription to those of a body.
func (s *subscription) take(body Members) (err error) {
	if s.serviceName, err = body.text("serviceName"); err != nil {
		return err
	}
	if s.channel, err = body.text("channel"); err != nil {
		return err
	}
	if s.address, err = body.text("userChannelId"); err != nil {
		return err
	}
	if s.state, err = body.text("state"); err != nil {
		return err
	}
	s.channel, s.state = cmp.Or(s.channel, channelEmail), cmp.Or(s.state, stateUnconfirmed)
	switch {
	case s.serviceName == "":
		return Bad("serviceName is required")
	case s.address == "":
		return Bad("userChannelId is required")
	case s.state != stateUnconfirmed && s.state != stateConfirmed && s.state != stateDeleted:
		return Bad("state " + quote(s.state) + " is not one of unconfirmed, confirmed and deleted")
	}
	for _, name := range append(ownMembers, fixedMembers...) {
		delete(body, name)
	}
	s.members = body
	for _, name := range []string{"userId", "unsubscriptionCode"} {
		if _, err := body.text(name); err != nil {
			return err
		}
	}
	if _, err := body.text("broadcastPushNotificationFilter"); err != nil {
		return Bad("broadcastPushNotificationFilter")
	}
	for _, name := range []string{"data", "confirmationRequest", "unsubscribedAdditionalServices"} {
		if _, ok := body[name]; ok && !body.isObject(name) {
			return Bad(name + " must be an object")
		}
	}
	request := s.confirmation()
	if _, ok := request["confirmationCodeEncrypted"]; ok {
		return Bad("confirmationCodeEncrypted is not supported: send the code as confirmationCode")
	}
	for _, name := range []string{"confirmationCode", "confirmationCodeRegex", "from", "subject", "textBody", "htmlBody"} {
		if _, err := request.text(name); err != nil {
			return Bad("confirmationRequest." + err.Error())
		}
	}
	if _, err := request.flag("sendRequest"); err != nil {
		return Bad("confirmationRequest." + err.Error())
	}
	return nil
}

// prepare sets the owner and the codes of a subscription that is created, or whose address has changed. It returns the
// message that asks for the confirmation, or nil if none is to be sent.
func (a *API) prepare(x *Exchange, s *subscription) (*settings.Message, error) {
	texts := a.subscriptionSettings(s.serviceName)
	switch {
	case x.Caller.Role == roles.User:
		s.members.set("userId", x.Caller.SecurityID)
		delete(s.members, "unsubscriptionCode")
	case !x.Caller.IsAdmin() || s.code() == "":
		delete(s.members, "unsubscriptionCode")
		if !x.Caller.IsAdmin() {
			delete(s.members, "userId")
		}
		if texts.Unsubscription.Code.Required {
			code, err := a.newCode(texts.Unsubscription.Code.Regex)
			if err != nil {
				return nil, err
			}
			s.members.set("unsubscriptionCode", code)
		}
	}
	_, own := s.members["confirmationRequest"]
	request := s.confirmation()
	if !x.Caller.IsAdmin() || !own {
		request = Members{}
		if configured := texts.ConfirmationRequest.Of(s.channel); configured != nil {
			request.set("", configured)
			if err := json.Unmarshal(request[""], &request); err != nil {
				return nil, err
			}
			delete(request, "")
		}
	}
	pattern, _ := request.text("confirmationCodeRegex")
	if code, _ := request.text("confirmationCode"); code == "" && (pattern != "" || !own || !x.Caller.IsAdmin()) {
		code, err := a.newCode(cmp.Or(pattern, `\d{5}`))
		if err != nil {
			return nil, err
		}
		request.set("confirmationCode", code)
	}
	s.members.set("confirmationRequest", request)
	var message settings.Message
	if err := json.Unmarshal(s.members["confirmationRequest"], &message); err != nil {
		return nil, Bad("confirmationRequest: " + err.Error())
	}
	if s.state != stateUnconfirmed || !message.SendRequest {
		return nil, nil
	}
	return &message, nil
}

// confirm sends the message that asks for the confirmation. The subscription stays if that fails.
func (a *API) confirm(x *Exchange, s *subscription, message *settings.Message) error {
	if message == nil {
		return nil
	}
	if err := a.sendTo(x.Request.Context(), s, message, x.httpHost(), []string{s.serviceName}); err != nil {
		a.Logger.Warn("the message that asks to confirm a subscription could not be sent", "subscription", s.id, "error", err)
		return &Failure{Status: http.StatusInternalServerError, Message: "Internal server error"}
	}
	return nil
}

// isConfirmed reports whether the address has a confirmed subscription of the same service and channel.
func (a *API) isConfirmed(ctx context.Context, s *subscription) (found bool, err error) {
	if _, ok := a.Topics.Topic(a.Settings.Service, topicName(s.serviceName)); !ok {
		return false, nil
	}
	err = a.each(ctx, people.SubscriptionFilter{Topic: topicName(s.serviceName), Channel: a.ourChannel(s.channel), Subscriber: s.address, State: people.StateActive}, func(*subscription) bool {
		found = true
		return false
	})
	return found, err
}
