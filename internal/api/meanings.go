package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// explainSchema fills in what members of a schema mean, where the type that
// they come from does not say.
func explainSchema(name string, s *huma.Schema) {
	if s.Description == "" {
		s.Description = schemaMeanings()[name]
	}
	for member, m := range s.Properties {
		if m.Type == "" && m.Ref == "" && strings.HasPrefix(m.Description, "object: ") {
			m.Type, m.AdditionalProperties = huma.TypeObject, true // JSON that is passed on as it is
		}
		if m.Description != "" || m.Ref != "" {
			continue
		}
		if m.Description = schemaMeanings()[name+"."+member]; m.Description == "" {
			m.Description = memberMeanings()[member]
		}
	}
}

// schemaMeanings explains schemas, and members whose name means something else
// elsewhere.
func schemaMeanings() map[string]string {
	return map[string]string{
		"MessageRun": "What a message would set off.",

		"Approve": "A broadcast that waits for approval.",
		"SetRate": "How fast a broadcast or a channel may leave.",

		"Inbound": "The mail server at which bounces and mails to unsubscribe come in.",

		"Restored":     "Which backup the server was restored from, and a page of what may have left since.",
		"RestoredFrom": "Which backup the server was restored from, and how much may have left since.",
		"Uncertain":    "A broadcast that was open at the backup, or an event that was not matched.",

		"Move":        "A move of all that is kept into another database.",
		"MoveRequest": "Where all that is kept shall be from now on.",
		"MoveTable":   "A table in both databases, at one moment.",

		"MergeRequest":       "The subscriber that stays.",
		"PersonalLine":       "A part of what is kept of a person.",
		"PersonalMessage":    "What a message said to one person.",
		"EraseRequest":       "How a person is forgotten.",
		"Erased":             "What an erasure was about.",
		"Suppression":        "An address that nobody may subscribe or write to.",
		"SuppressionRequest": "An address that nobody shall write to any more.",
		"SuppressionAdded":   "The answer to one line of a list of suppressions.",
		"SuppressionList":    "A page of suppressions, the latest first.",
		"SuppressionSummary": "The short answer to a list of suppressions (?quiet=true).",

		"Address":          "Where a subscriber is reached.",
		"Subscriber":       "A person or machine with its addresses.",
		"SubscriberPut":    "What a subscriber shall be.",
		"SubscriberList":   "A page of subscribers, in the order in which they are kept.",
		"SubscriptionList": "A page of subscriptions, in the order in which they are kept.",

		"ChannelPage":          "A page of channels, by name.",
		"ChannelSettings":      "A channel as it is configured.",
		"Relay":                "One of several next hops of a channel. What it leaves out is the channel's, but for name and password.",
		"ServiceLimits":        "What all channels of a service send together at most.",
		"Waiting":              "What messages wait for that are not tried yet, and until when.",
		"Destination":          "Somebody a channel sends to that is not well, or for whom messages wait.",
		"Destinations":         "A page of the destinations of a channel, by name.",
		"RelayStatus":          "A next hop of a channel, as it is doing.",
		"DestinationSettings":  "What a channel sends to each destination at most: a domain, or the host and port of webhooks.",
		"QuotaStatus":          "How many messages of a channel, or of a service, may leave on one day, and how many of today's are used.",
		"BounceRule":           "How many messages have to come back, and in what time, until an address is given up.",
		"Bounces":              "The rules by which a service gives addresses up.",
		"DailyQuota":           "How many messages of a channel, or of a service, may leave on one day.",
		"DKIMKey":              "A private key that mail is signed with, by the names under which its record and the key itself are found.",
		"DestinationLimit":     "What a channel sends to one destination at most.",
		"Reserve":              "The part of a channel's connections that less urgent lanes leave free.",
		"Digest":               "How what waits for a cadence is told together.",
		"DigestRun":            "When a digest was due, and why.",
		"DigestRun.cadence":    "Such as daily 08:00; immediate where it is sent since people chose that.",
		"DigestRun.time_zone":  "On whose clock.",
		"DigestRun.due":        "When it was due.",
		"Gathering":            "The part of an event that is told in a digest.",
		"Gathering.cadence":    "Such as daily 08:00.",
		"Gathering.time_zone":  "On whose clock.",
		"Gathering.due":        "When the digest is sent.",
		"Gathering.recipients": "By channel, as they were matched; who has left since is not told.",
		"Gathering.digest":     "Id of the digest (evt-...); absent while it waits.",
		"Gathered":             "What waits for a digest.",
		"QuietHours":           "When nothing is sent to people, on the clock of where they live.",
		"Rule":                 "A condition of a topic that subscriptions choose by name.",
		"RulePage":             "A page of the rules of a topic, in their order.",
		"Service":              "A tenant: it owns topics, subscribers, templates, channels and keys.",
		"ServicePage":          "A page of services, by name.",
		"Template":             "How a message is written; every change makes a new version, which is a draft until it is published.",
		"TemplatePage":         "A page of templates by name, or of the versions of one.",
		"Publication":          "What of a template is to be published; nothing: the draft.",
		"TemplateDiff":         "What differs between two versions of a template.",
		"VersionRef":           "A version of a template.",
		"PartDiff":             "How one part of a template differs.",
		"Topic":                "A named kind of event.",
		"TopicPage":            "A page of topics, by name.",

		"AuditEntry":    "One change: who did what to which thing, and when.",
		"AuditPage":     "A page of the audit, the latest first.",
		"AuditEntry.at": "When it was done.",

		"DryRunDigest":            "How many would be told of an event in a digest.",
		"DryRunDigest.recipients": "One for each address over each channel.",

		"AudienceFilter":         "A sender's condition over the people whom an event would reach.",
		"AudienceFilter.filter":  "CEL over subscriber and sub.",
		"AudienceFilter.outside": "Subscriptions that want the event and are not in the audience; known once it is matched.",

		"Accepted":             "An event that is kept: every recipient will be found and served.",
		"Accepteds":            "The answer to events that are taken as a whole.",
		"Attempt":              "One try of a delivery.",
		"Broadcast":            "Everything that one event set off, seen as one thing.",
		"Broadcasts":           "A page of broadcasts, the newest first.",
		"Bus":                  "What waits at the two durable hops.",
		"CloudEvent":           "A CloudEvent 1.0 in the JSON format; members that are not named here are extension attributes.",
		"EventSummary":         "The short answer to NDJSON events (?quiet=true).",
		"LineError":            "The answer to one line that was refused.",
		"PutSummary":           "The short answer to many subscriptions (?quiet=true).",
		"Change":               "A member of a document that differs.",
		"Channel":              "A way out, as it is doing.",
		"Check":                "One thing that had to hold for a delivery.",
		"Control":              "What to pause, resume or cancel.",
		"Deliveries":           "What is under way.",
		"Delivery":             "One message for one recipient.",
		"DeliveryPage":         "A page of deliveries.",
		"Diff":                 "What an apply changed, or would change; empty where everything was so already.",
		"Explanation.cadence":  "When its messages are due; absent: at once.",
		"Explanation.found_by": "What of an event leads the index to the condition; absent where every event is held against it, or there is none.",
		"Explanation":          "Why an event was for a subscription or not.",
		"FieldChange":          "One field before and after, as text.",
		"Key":                  "What is known of a key.",
		"KeyPage":              "A page of keys, in the order in which they were made.",
		"KeyPatch":             "A change of a key (JSON Merge Patch, RFC 7396): what is absent stays, null sets back.",
		"KeyRequest":           "A key that is asked for.",
		"Member":               "One thing that was wrong.",
		"Message":              "A direct send, and what became of it.",
		"MessageContent":       "A template for one message: Liquid, of which the HTML is escaped.",
		"MessageRequest":       "A message to people who are named: one by to or subscriber, many by recipients.",
		"NewKey":               "A key with its secret, which is shown this once.",
		"Parked":               "Work that failed too often and waits for an operator.",
		"ParkedList":           "A page of parked work, the oldest first.",
		"Part":                 "A part of a condition, and what it came to.",
		"Paused":               "Something that an operator, or a broken channel, has stopped.",
		"Finding":              "One thing that a reader of mail, a screen reader or a filter against spam is going to mind.",
		"Lint":                 "What readers are going to mind of a template: hints, never errors.",
		"LintRequest":          "What is to be looked at; nothing: the stored template.",
		"Preview":              "What a template says.",
		"PreviewRequest":       "What a preview is to take; nothing: samples.",
		"TemplateParts":        "What a template says, in Liquid.",
		"TemplateWords":        "What a variant of a template says in place of it.",
		"TemplateLocale":       "What a template says in another language.",
		"TemplateDraft":        "A template that is not stored.",
		"Problem":              "What was wrong (RFC 9457).",
		"RecipientError":       "A member of a list that gets nothing, and why.",
		"Rotation":             "How a key gets a new secret.",
		"Scope":                "What a pause, resume or cancel reaches.",
		"Stages":               "When an event, or the first or last of what it set off, left a stage; absent: not yet.",
		"Status":               "How the server is doing.",
		"ConditionReport":      "What the conditions of a service cost to which no index leads.",
		"TopicLoad":            "What an event of a topic takes.",
		"DearCondition":        "A condition that every event of its topic is held against.",
		"KeyState":             "The last event of a key: what the next one is compared with.",
		"ReceiverSecret":       "What a receiver of webhooks verifies them with.",
		"StatePage":            "A part of the states of a topic, by key.",
		"DryRun":               "For whom an event would be, were it published now.",
		"DryRunChannel":        "How many messages would leave over a channel.",
		"DryRunRule":           "How many subscriptions want an event by a rule.",
		"DryRunHit":            "A subscription that would be told.",
		"Matching":             "What a condition costs every event of its topic.",
		"Subscribed":           "The answer to one subscription that was put.",
		"Subscription":         "What somebody wants to be told.",
		"SubscriptionRequest":  "What somebody wants to be told. The subscriber is named, or found or made by the address.",
		"To":                   "One recipient of a list.",
		"MessagePage":          "A page of messages, the latest first.",
		"MessagePage.messages": "The messages of this page.",
		"Events":               "A page of events, the newest first.",

		"Attempt.state":             "State that the try led to: deferred, accepted, failed and so on.",
		"Attempt.code":              "Code of the protocol, such as the SMTP reply 250; absent: none came.",
		"Attempt.text":              "The reply's text, at most 512 bytes.",
		"Attempt.at":                "When the answer was read.",
		"Broadcast.data":            "The event's data; left out of lists.",
		"Broadcast.deliveries":      "How many deliveries are in each state; states without any are left out.",
		"Broadcast.not_before":      "Nothing leaves before; absent: at once.",
		"Broadcast.expires":         "Nothing leaves after; absent: as topic and channel say.",
		"Broadcast.id":              "Id of the CloudEvent.",
		"Broadcast.event":           "Public id of the event, evt-...",
		"Broadcast.reason":          "Why it is paused or cancelled.",
		"Broadcast.state":           "queued, held (it waits for approval), running, paused, cancelled or completed.",
		"Broadcast.rate_limit":      "How many of its messages may leave a second, minute or hour, where that was set by hand: 100/s.",
		"Broadcast.approved_by":     "Of one that was held: the key that approved it.",
		"Broadcast.rate_per_second": "Deliveries that were settled a second, over the last ten seconds.",
		"Broadcast.estimated_end":   "When the last delivery is settled if that goes on; absent of one that stands.",
		"Broadcast.time":            "Time of the event, as its sender gave it.",
		"Broadcast.type":            "Type of the CloudEvent.",
		"Broadcast.kind":            "event: of a topic, whose recipients were matched; message: a direct send, whose recipients were named; digest: of a cadence, for whom events were gathered.",
		"Broadcast.gathered":        "Of an event: what of it is told in digests.",
		"Broadcast.digest":          "Of a digest: when it was due.",
		"Broadcast.topic":           "Name of the topic; empty of a message.",
		"Change.name":               "Name of the member; of a rule: topic/rule.",
		"Change.action":             "create, update or delete.",
		"Change.fields":             "What differs, of an update.",
		"Change.kind":               "service, channel, template, topic or rule.",
		"Channel.name":              "Name of the channel.",
		"Check.check":               "What was looked at.",
		"Check.detail":              "What was found.",
		"Check.holds":               "Whether it held.",
		"Delivery.id":               "Public id of the delivery, dlv-...",
		"Delivery.address":          "Address as sent; the present one while nothing was sent.",
		"Delivery.waits":            "What an open one waits for, beside the next of its attempts; absent: for its turn, or for nothing.",
		"Broadcast.waits":           "What open deliveries wait for, by reason, beside the next of their attempts.",
		"Waiting.for":               "not_before, quiet_hours, broadcast_rate (the rate of the broadcast), destination_limit (how much its destination takes), destination_suspended (it is left alone) or daily_quota (that of the day is spent).",
		"Waiting.until":             "When the first of them is looked at again.",
		"Waiting.last":              "When the last of them is; absent of a delivery.",
		"Waiting.messages":          "How many there are; absent of a delivery, and where nobody knows.",
		"Waiting.destination":       "Whom a delivery waits for: a domain, or host:port of a webhook.",
		"Delivery.state":            "pending, deferred, accepted, delivered, failed, expired, cancelled or suppressed.",
		"Delivery.subscriptions":    "Public ids of the subscriptions that wanted it.",
		"Delivery.template":         "Template that it was written with, name@version.",
		"Delivery.kind":             "event; message: of a direct send; or digest.",
		"Delivery.events":           "Of a digest: ids of the events that it tells of.",
		"Delivery.topic":            "Name of the topic; empty of a message.",
		"Explanation.checks":        "What had to hold, one after the other.",
		"Explanation.condition":     "The condition, part by part.",
		"Explanation.filter":        "The subscription's own condition (CEL).",
		"Explanation.params":        "Values for the rule's params.",
		"Explanation.rule":          "Name of the rule.",
		"Explanation.wanted":        "Whether the event was, or would be, for the subscription.",
		"Explanation.summary":       "The whole in one sentence.",
		"Explanation.delivery":      "Public id of the delivery that came of it, dlv-...",
		"Key.disabled":              "Whether it opens nothing at present.",
		"Key.id":                    "Id of the key, key-1 and so on.",
		"Key.name":                  "What the key is for.",
		"Key.scopes":                "What the key may do: admin (which includes the others), publish, subscribe, read, secrets, approve.",
		"KeyPatch.name":             "What the key is for.",
		"Parked.id":                 "Id of the parked work, prk-...",
		"Parked.kind":               "event or batch.",
		"Parked.reason":             "What went wrong the last time.",
		"Parked.at":                 "When it was parked.",
		"Part.kind":                 "What kind of part it is.",
		"Part.text":                 "The part as it is written.",
		"Part.value":                "What it came to.",
		"Part.result":               "What it came to, of a part that is true or false.",
		"Part.error":                "Why it came to nothing.",
		"Part.parts":                "What it is made of.",
		"Paused.since":              "Since when.",
		"Paused.reason":             "Why, as it was given.",
		"Scope.kind":                "all, service, channel or broadcast.",
		"Scope.name":                "Name of the service, service/channel, or public id of the event.",
		"Stages.received":           "Intake read it.",
		"Stages.kept":               "It was durable, and then acknowledged.",
		"Stages.matched":            "The recipients were known.",
		"Stages.frozen":             "The list of recipients was durable.",
		"Stages.first":              "The first outcome was durable.",
		"Stages.last":               "The last outcome so far was durable.",
		"Stages.completed":          "Every delivery was settled.",
		"Status.paused":             "What is paused, by whom ever.",
		"Status.ready":              "Whether it takes work.",
		"Status.started":            "When the server started.",
		"Status.channels":           "The ways out.",
		"Status.bus":                "What waits.",
		"Status.deliveries":         "What is under way.",
		"Status.disk_free_bytes":    "Free disk of the data directory, in bytes.",
		"Database":                  "The PostgreSQL that everything is kept in.",
		"Subscription.state":        "active, paused or ended.",
		"Subscription.reason":       "Why it ended.",
		"Subscription.created_at":   "When it was added first.",
		"Subscription.to":           "Address of the subscriber in the channel's form.",
		"Subscription.id":           "Public id of the subscription.",
		"Subscription.cadence":      "When messages are due: immediate, a window, or times on a local clock.",
	}
}

// memberMeanings explains members that mean the same wherever they stand.
func memberMeanings() map[string]string {
	return map[string]string{
		"attempts": "Every try, the first one first.", "attempt": "Number of the try, from 1.",
		"broadcasts": "The broadcasts of this page.", "deliveries": "The deliveries of this page.", "keys": "The keys of this page.", "parked": "The parked work of this page.",
		"changes": "What differs.", "channel": "Name of the channel.", "created_at": "When it was made.", "data": "Data of yours, for templates.",
		"data_base64": "The event's data where they are not text, in base64.", "datacontenttype": "Media type of the data; absent: application/json.",
		"dataschema": "URI of the schema of the data, as the sender gave it.", "driver": "What speaks to the next hop: smtp or file.",
		"ended_at": "When it ended; absent: it has not.", "paused_at": "When it was paused; absent: it is not.", "event": "Public id of the event, evt-...", "extensions": "Attributes of the CloudEvent that the specification does not name.",
		"failures": "How often it failed.", "field": "Name of the field.", "filter": "Own condition in CEL.", "id": "The id.", "lane": "urgent, normal or bulk.",
		"last_error": "What went wrong the last time; absent: nothing did.", "matched": "How many subscriptions wanted it.", "members": "How many recipients it holds up.",
		"messages": "How many messages it set off: one per address and channel.", "name": "The name.", "new": "The value as it is now.", "next_at": "When the next try is due, of a deferred one.",
		"old": "The value as it was.", "params": "Values for the rule's params.", "relay": "Host and port that answered.", "rule": "Name of the rule.", "service": "Name of the service.",
		"batches_pending": "Batches of deliveries that wait for a deliverer.", "next": "The cursor of the next page; absent at the end.",
		"source": "Source of the CloudEvent, a URI-reference.", "sourceid": "Id of the CloudEvent, as its sender gave it.", "stages": "When it left which stage.",
		"subject": "Subject of the CloudEvent.", "subscriber": "Id of the subscriber.", "subscription": "Public id of the subscription.", "topic": "Name of the topic.",
		"reference": "The client's own text, of a message.", "version": "Version of the server.", "scope": "What it reaches.", "error": "What was wrong.", "created": "How many were added.", "updated": "How many were there and are now as asked.",
		"specversion": "Version of CloudEvents: 1.0.", "time": "When it happened (RFC 3339).", "scopes": "What the key may do: admin (which includes the others), publish, subscribe, read, secrets, approve.",
		"disabled": "Whether it opens nothing at present.",
		"failed":   "How many were refused.", "duplicates": "How many were known already.",
	}
}

// parameterMeaning explains parameters that say the same wherever they stand.
func parameterMeaning(name string) string {
	switch name {
	case "limit":
		return "How many members a page has at most."
	case "cursor":
		return "next of the page before, with the same filters; left out: the first page."
	}
	return ""
}
