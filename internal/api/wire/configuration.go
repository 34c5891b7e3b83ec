package wire

import "encoding/json"

// A Service is a tenant: it owns topics, subscribers, templates, channels and keys.
type Service struct {
	Name  string `json:"name,omitempty" doc:"lower case letters, digits and _ . -, at most 64; may be left out where the path says it"`
	Title string `json:"title,omitempty" maxLength:"512" doc:"for people"`

	SubscriberSchema json.RawMessage `json:"subscriber_schema,omitempty" doc:"JSON Schema of the attributes of its subscribers; without: any object"`
}

// A Topic is a named kind of event.
type Topic struct {
	Name     string          `json:"name,omitempty" doc:"may be left out where the path says it"`
	Title    string          `json:"title,omitempty" doc:"for people"`
	Lane     string          `json:"lane,omitempty" enum:"urgent,normal,bulk" doc:"how urgent its messages are; normal"`
	Schema   json.RawMessage `json:"schema,omitempty" doc:"JSON Schema of the events' data; without: anything goes"`
	Template string          `json:"template,omitempty" doc:"for own filters, and for rules without one"`
	Expiry   string          `json:"expiry,omitempty" doc:"a message that could not leave for so long expires, such as 2h; without: the channel's"`
	Rules    []Rule          `json:"rules,omitempty" doc:"in the order that picks the template; where they are left out of a change they stay"`
}

// A Rule is a condition of a topic that subscriptions choose by name.
type Rule struct {
	Name     string            `json:"name,omitempty" doc:"may be left out where the path says it"`
	When     string            `json:"when" doc:"CEL over event and sub, such as event.mag >= sub.min_mag"`
	Params   map[string]string `json:"params,omitempty" doc:"what a subscription has to give: name and type, which is string, number, boolean or strings"`
	Template string            `json:"template,omitempty" doc:"for messages that the rule picks; without: the topic's"`
}

// A Template is how a message is written. Every change makes a new version.
type Template struct {
	Name    string `json:"name,omitempty" doc:"may be left out where the path says it"`
	Version int    `json:"version,omitempty" doc:"from 1; made by the server, and ignored in a request"`
	Subject string `json:"subject,omitempty" doc:"Liquid"`
	Text    string `json:"text,omitempty" doc:"Liquid"`
	HTML    string `json:"html,omitempty" doc:"Liquid"`
}

// ChannelSettings is a channel as it is configured. A password is never shown and
// never sent: the server reads it from where password_env or password_file say.
type ChannelSettings struct {
	Name         string   `json:"name,omitempty" doc:"may be left out where the path says it"`
	Driver       string   `json:"driver" doc:"smtp or file"`
	Relay        string   `json:"relay,omitempty" doc:"smtp: host:port of the next hop"`
	Path         string   `json:"path,omitempty" doc:"file: the folder to write to"`
	From         string   `json:"from,omitempty" doc:"header From, such as News <news@example.org>"`
	Sender       string   `json:"sender,omitempty" doc:"envelope sender; without: the address of from"`
	ReplyTo      string   `json:"reply_to,omitempty" doc:"header Reply-To"`
	Connections  int      `json:"connections,omitempty" doc:"at once"`
	Rate         string   `json:"rate,omitempty" doc:"over all connections: 30/s, 1000/min, 5000/h or unlimited"`
	TLS          string   `json:"tls,omitempty" doc:"off, opportunistic, required or implicit"`
	Username     string   `json:"username,omitempty" doc:"for AUTH"`
	PasswordEnv  string   `json:"password_env,omitempty" doc:"name of an environment variable of the server"`
	PasswordFile string   `json:"password_file,omitempty" doc:"path on the server"`
	Hello        string   `json:"hello,omitempty" doc:"name in EHLO; without: the host's"`
	SendTimeout  string   `json:"send_timeout,omitempty" doc:"of one message, such as 2m"`
	Expiry       string   `json:"expiry,omitempty" doc:"a message that could not leave for so long expires"`
	Retry        []string `json:"retry,omitempty" doc:"waits between attempts, each with jitter"`
	Grouping     string   `json:"grouping,omitempty" doc:"auto, pipelining or lockstep"`
	Domain       string   `json:"domain,omitempty" doc:"right side of Message-ID; without: that of from"`
	ListID       string   `json:"list_id,omitempty" doc:"header List-Id (RFC 2919)"`
}

// ServicePage is a part of the services, by name.
type ServicePage struct {
	Services []Service `json:"services" doc:"by name"`
	Next     string    `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// TopicPage is a part of the topics, by name.
type TopicPage struct {
	Topics []Topic `json:"topics" doc:"by name"`
	Next   string  `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// RulePage is a part of the rules of a topic, in their order.
type RulePage struct {
	Rules []Rule `json:"rules" doc:"in the order that picks the template"`
	Next  string `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// TemplatePage is a part of the templates, by name, or of the versions of one,
// the oldest first.
type TemplatePage struct {
	Templates []Template `json:"templates" doc:"by name, or from the oldest version"`
	Next      string     `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// ChannelPage is a part of the channels, by name.
type ChannelPage struct {
	Channels []ChannelSettings `json:"channels" doc:"by name"`
	Next     string            `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
