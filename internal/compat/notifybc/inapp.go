package notifybc

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/compat/notifybc/tokens"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
)

func (a *API) listNotifications(x *Exchange) error  { return a.notificationsOf(x, true) }
func (a *API) countNotifications(x *Exchange) error { return a.notificationsOf(x, false) }

// notificationsOf lists or counts the notifications that a caller may see.
func (a *API) notificationsOf(x *Exchange, list bool) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	l := newLister(q, list)
	shown := 0 // ids in the arrays of dispatch
	err = a.eachNotification(x.Request.Context(), func(n *notification) (bool, error) {
		if x.Caller.Role == roles.User && !a.isShown(n, &x.Caller) {
			return true, nil
		}
		a.setState(x.Request.Context(), n)
		record := n.record()
		if x.Caller.IsAdmin() && n.Event != "" && shown < maxDispatchIDs {
			var err error
			if record, err = a.withDispatch(x.Request.Context(), n, x.httpHost()); err != nil {
				return false, err
			}
			shown += len(n.Candidates)
		}
		return l.add(a.seenBy(n, record, &x.Caller)), nil
	})
	if err != nil {
		return err
	}
	return l.answer(x)
}

// eachNotification visits all notifications in the order of their ids.
func (a *API) eachNotification(ctx context.Context, visit func(*notification) (bool, error)) error {
	for after := ""; ; {
		list, err := a.Records.NotifyBCRecords(ctx, a.Settings.Service, kindNotification, after, pageSize)
		if err != nil {
			return err
		}
		for i := range list {
			n, err := decodeNotification(&list[i])
			if err != nil {
				return err
			}
			if more, err := visit(n); err != nil || !more {
				return err
			}
			after = list[i].ID
		}
		if len(list) < pageSize {
			return nil
		}
	}
}

// isShown reports whether a user sees a notification in lists.
func (a *API) isShown(n *notification, c *roles.Caller) bool {
	now := a.Clock.Now()
	until, limited := parseTime(n.text("validTill"))
	return n.isOf(c) && n.text("state") != stateDeleted && !n.dueAt().After(now) && (!limited || until.After(now)) && !slices.Contains(n.users("deletedBy"), c.SecurityID)
}

// seenBy returns the record as a caller sees it: a user sees nothing about other users.
func (a *API) seenBy(n *notification, record Members, c *roles.Caller) Members {
	if c.Role != roles.User {
		return record
	}
	if n.isBroadcast() && slices.Contains(n.users("readBy"), c.SecurityID) {
		record.set("state", stateRead)
	}
	if n.isBroadcast() {
		record["readBy"], record["deletedBy"] = json.RawMessage("null"), json.RawMessage("null")
	}
	for _, name := range []string{"createdBy", "updatedBy", "dispatch"} {
		delete(record, name)
	}
	return record
}

// users returns the users in readBy or deletedBy.
func (n *notification) users(name string) (users []string) {
	_ = json.Unmarshal(n.Members[name], &users) // missing at first
	return users
}

// visible returns the notification with an id, if the caller may see it.
func (a *API) visible(x *Exchange) (*notification, error) {
	n, err := a.load(x.Request.Context(), x.Request.PathValue("id"))
	if err == nil && x.Caller.Role == roles.User && !n.isOf(&x.Caller) {
		err = errMissing
	}
	return n, err
}

func (a *API) getNotification(x *Exchange) error {
	n, err := a.visible(x)
	if err != nil {
		return err
	}
	a.setState(x.Request.Context(), n)
	record, err := a.withDispatch(x.Request.Context(), n, x.httpHost())
	if err != nil {
		return err
	}
	return x.JSON(a.seenBy(n, record, &x.Caller))
}

// patchNotification changes the members of a notification. A user can only say that a message in the application was read
// or deleted.
func (a *API) patchNotification(x *Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	return a.edit(x, body)
}

func (a *API) deleteNotification(x *Exchange) error {
	body := Members{}
	body.set("state", stateDeleted)
	return a.edit(x, body)
}

// edit changes a notification.
func (a *API) edit(x *Exchange, body Members) error {
	ctx := x.Request.Context()
	a.editing.Lock()
	defer a.editing.Unlock()
	n, err := a.load(ctx, x.Request.PathValue("id"))
	if err != nil {
		return err
	}
	if x.Caller.Role == roles.User {
		if err := n.editByUser(x, body); err != nil {
			return err
		}
	} else {
		for _, name := range append([]string{"id", "dispatch"}, fixedMembers...) {
			delete(body, name)
		}
		maps.Copy(n.Members, body)
		if err := n.check(); err != nil {
			return err
		}
	}
	x.stamp(n.Members, "updated", "updatedBy")
	if err := a.keep(ctx, n); err != nil {
		return err
	}
	return x.Done()
}

// editByUser changes the state of a message in the application for one user.
func (n *notification) editByUser(x *Exchange, body Members) error {
	user := x.Caller.SecurityID
	if n.channel() != channelInApp {
		return errRefused
	}
	if !n.isOf(&x.Caller) {
		return errMissing
	}
	state, err := body.text("state")
	switch {
	case err != nil:
		return err
	case state == "":
		return errMissing
	case state != stateRead && state != stateDeleted && state != stateNew:
		return Bad("state " + quote(state) + " is not one of new, read and deleted")
	case !n.isBroadcast():
		n.Members.set("state", state)
		return nil
	}
	name := "readBy"
	if state == stateDeleted {
		name = "deletedBy"
	}
	if users := n.users(name); state != stateNew && !slices.Contains(users, user) {
		n.Members.set(name, append(users, user))
	}
	return nil
}

// replaceNotification replaces a notification, and dispatches it again to those who have not got it.
func (a *API) replaceNotification(x *Exchange) error {
	body, err := x.Body()
	if err != nil {
		return err
	}
	a.editing.Lock()
	n, err := a.load(x.Request.Context(), x.Request.PathValue("id"))
	if err == nil {
		err = n.replace(x, body)
	}
	a.editing.Unlock()
	if err != nil {
		return err
	}
	if n.text("state") != stateNew || n.Event != "" {
		if err := a.keep(x.Request.Context(), n); err != nil {
			return err
		}
		return x.Done()
	}
	discard := *x
	discard.Writer = &discarded{header: http.Header{}, of: x.Writer}
	if err := a.accept(&discard, n); err != nil {
		return err
	}
	return x.Done()
}

// replace sets the members of a notification to those of a body.
func (n *notification) replace(x *Exchange, body Members) error {
	for _, name := range append([]string{"id", "dispatch"}, fixedMembers...) {
		delete(body, name)
	}
	for _, name := range []string{"created", "createdBy"} {
		if value, ok := n.Members[name]; ok {
			body[name] = value
		}
	}
	n.Members = body
	if _, ok := body["state"]; !ok {
		body.set("state", stateNew)
	}
	x.stamp(body, "updated", "updatedBy")
	return n.check()
}

// discarded drops an answer: the route answers without a body.
type discarded struct {
	header http.Header
	of     http.ResponseWriter
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d *discarded) WriteHeader(int)             {}
func (d *discarded) Unwrap() http.ResponseWriter { return d.of }

// putIntoMailbox puts a message in the application for one user into the mailbox of that user, if the service has a
// channel for it. The notification stays if that fails.
func (a *API) putIntoMailbox(ctx context.Context, n *notification) {
	to := cmp.Or(n.text("userChannelId"), n.text("userId"))
	if a.Settings.Channels.InApp == "" || n.isBroadcast() || to == "" {
		return
	}
	var m struct{ Subject, Title, TextBody, Body, HTMLBody string }
	if err := json.Unmarshal(n.Members["message"], &m); err != nil {
		return // it is for the application alone
	}
	v := &tokens.Values{Static: a.staticTokens(n.text("serviceName"), n.Host), Root: n.Host + a.Settings.Root, Notification: n.Members.decoded("data")}
	write := func(text string) string { return tokens.Escape(tokens.Text(text, v)) }
	content := fanfare.EventContent{AsIs: true, Content: fanfare.Content{Subject: write(cmp.Or(m.Subject, m.Title)), Text: write(cmp.Or(m.TextBody, m.Body)), HTML: write(m.HTMLBody)}}
	if content.Text+content.HTML == "" {
		return
	}
	until, _ := parseTime(n.text("validTill"))
	_, err := a.Messages.SendContent(ctx, a.Settings.Service, &messages.ContentMessage{Key: n.eventID(), Channel: a.Settings.Channels.InApp, To: to, Content: content, NotBefore: n.dueAt(), Expires: until})
	if err != nil {
		a.Logger.Info("a notification in the application could not be put into a mailbox", "notification", n.id, "error", err)
	}
}
