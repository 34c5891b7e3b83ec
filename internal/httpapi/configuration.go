package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// OfTopic identifies the topic of a list.
type OfTopic struct {
	Page
	Topic string `path:"topic" doc:"name of the topic"`
}

func (a *API) configurationRoutes() {
	a.serviceRoutes()
	a.topicRoutes()
	a.templateRoutes()
	a.channelRoutes()
}

func listOp(id, path, tag, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{tag}, Summary: summary}
}

func (a *API) serviceRoutes() {
	see := func(s catalog.Service) wire.Service {
		return shownAs[wire.Service](s.ServiceLimits, struct {
			Pages       catalog.Pages        `json:"pages,omitzero"`
			MailDomains []catalog.MailDomain `json:"mail_domains,omitempty"`
			Roles       []catalog.RoleGrant  `json:"roles,omitempty"`

			Notify catalog.NotifySettings `json:"notify,omitzero"`
		}{s.Pages, s.MailDomains, s.Roles, s.Notify}, wire.Service{Name: s.Name, Title: s.Title, MatchingBudget: catalog.Duration(s.MatchingBudget).String(),
			HoldAbove: s.HoldAbove, HoldExemptUrgent: s.HoldExemptUrgent, SendApproval: s.SendApproval, SubscriberSchema: s.SubscriberSchema})
	}
	read(a, listOp("list-services", "/v1/services", "configuration", "List the services that the key can access, by name"), mayListServices,
		func(_ context.Context, c caller, in *Page) (page wire.ServicePage, err error) {
			var all []wire.Service
			for _, s := range a.deps.Documents.Configuration().Services() {
				if c.sees(s.Name) {
					all = append(all, see(s))
				}
			}
			page.Services, page.Next, err = pageOf(listingOf("services", c.service), in, all, func(s *wire.Service) string { return s.Name })
			return page, err
		})
	addMember(a, memberKind[wire.Service]{kind: "service", path: "/v1/services/{service}", tag: "configuration", change: operator,
		params: []*huma.Param{param("service", "name of the service")},
		about:  "Deleting a service also deletes its topics, templates, channels and keys; its subscribers are no longer accessible.",
		see: func(c catalog.Configuration, m document.Member) (wire.Service, bool) {
			s := c.Service(m.Name)
			if s == nil {
				return wire.Service{}, false
			}
			return see(*s), true
		}})
}

func (a *API) topicRoutes() {
	see := func(t *catalog.Topic) wire.Topic {
		return shownAs[wire.Topic](t.Settings(), wire.Topic{Name: t.Name, Rules: shownAs[[]wire.Rule](t.Rules)})
	}
	read(a, listOp("list-topics", "/v1/topics", "configuration", "List the topics of a service, by name"), mayRead,
		func(_ context.Context, c caller, in *Page) (page wire.TopicPage, err error) {
			service, err := a.oneService(c)
			if err != nil {
				return page, err
			}
			var all []wire.Topic
			for _, t := range a.deps.Documents.Configuration().Topics(service) {
				all = append(all, see(t))
			}
			page.Topics, page.Next, err = pageOf(listingOf("topics", service), in, all, func(t *wire.Topic) string { return t.Name })
			return page, err
		})
	topic := param("topic", "name of the topic")
	addMember(a, memberKind[wire.Topic]{kind: "topic", path: "/v1/topics/{topic}", tag: "configuration", change: mayConfigure, params: []*huma.Param{topic},
		about: "The list of rules replaces the existing rules, in the given order; without a list, the rules do not change. A schema that does not fit active filters is a conflict.",
		see: func(c catalog.Configuration, m document.Member) (wire.Topic, bool) {
			t := c.Topic(m.Service, m.Name)
			if t == nil {
				return wire.Topic{}, false
			}
			return see(t), true
		}})
	read(a, listOp("list-rules", "/v1/topics/{topic}/rules", "configuration", "List the rules of a topic, in the order that selects the template"), mayRead,
		func(_ context.Context, c caller, in *OfTopic) (page wire.RulePage, err error) {
			service, err := a.oneService(c)
			if err != nil {
				return page, err
			}
			t := a.deps.Documents.Configuration().Topic(service, in.Topic)
			if t == nil {
				return page, problem.NotFound("topic", in.Topic)
			}
			page.Rules, page.Next, err = inOrder(listingOf("rules", service, in.Topic), &in.Page, shownAs[[]wire.Rule](t.Rules))
			return page, err
		})
	addMember(a, memberKind[wire.Rule]{kind: "rule", path: "/v1/topics/{topic}/rules/{rule}", tag: "configuration", change: mayConfigure,
		params: []*huma.Param{topic, param("rule", "name of the rule")},
		about:  "A new rule becomes the last of its topic; an existing rule keeps its position. To change the order, replace the topic.",
		see: func(c catalog.Configuration, m document.Member) (wire.Rule, bool) {
			t := c.Topic(m.Service, m.Name)
			if t == nil || t.Rule(m.Rule) == nil {
				return wire.Rule{}, false
			}
			return shownAs[wire.Rule](t.Rule(m.Rule)), true
		}})
}

// inOrder returns one page of a list in its existing order.
func inOrder[T any](l listing, p *Page, all []T) (page []T, next string, err error) {
	type placed struct {
		at  string
		one T
	}
	places := make([]placed, len(all))
	for i := range all {
		places[i] = placed{fmt.Sprintf("%08d", i), all[i]}
	}
	cut, next, err := pageOf(l, p, places, func(p *placed) string { return p.at })
	page = make([]T, len(cut))
	for i := range cut {
		page[i] = cut[i].one
	}
	return page, next, err
}

func (a *API) channelRoutes() {
	see := func(ch *catalog.Channel) wire.ChannelSettings {
		return shownAs[wire.ChannelSettings](ch.ChannelSettings, wire.ChannelSettings{Name: ch.Name, Driver: ch.Driver})
	}
	read(a, listOp("list-channels", "/v1/channels", "configuration", "List the configured channels of a service, by name"), mayRead,
		func(_ context.Context, c caller, in *Page) (page wire.ChannelPage, err error) {
			service, err := a.oneService(c)
			if err != nil {
				return page, err
			}
			var all []wire.ChannelSettings
			for _, ch := range a.deps.Documents.Configuration().Channels(service) {
				all = append(all, see(ch))
			}
			page.Channels, page.Next, err = pageOf(listingOf("channels", service), in, all, func(ch *wire.ChannelSettings) string { return ch.Name })
			return page, err
		})
	addMember(a, memberKind[wire.ChannelSettings]{kind: "channel", path: "/v1/channels/{channel}", tag: "configuration", change: mayConfigure,
		params: []*huma.Param{param("channel", "name of the channel")},
		about:  "Requests and responses never contain secrets: members such as password_env and password_file, also in dkim and receipts, specify where the server reads them.",
		see: func(c catalog.Configuration, m document.Member) (wire.ChannelSettings, bool) {
			ch := c.Channel(m.Service, m.Name)
			if ch == nil {
				return wire.ChannelSettings{}, false
			}
			return see(ch), true
		}})
}
