package chaos

// The topics of the test; message is not a topic, but a message to one person.
const (
	story    = "story"    // a broadcast to many people
	note     = "note"     // urgent, to people who want its level
	quote    = "quote"    // reports crossings of levels
	bulletin = "bulletin" // a part of its subscribers gets digests
	message  = "message"
)

// The rules of the topic quote.
const (
	below = "below"
	above = "above"
)

// document is the configuration, with places for the address of the relay and the number of connections of each node.
const document = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: 500/s, connections: %d, retry: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s]}
topics:
  story:
    schema: {type: object, required: [title], properties: {title: {type: string}}}
    template: one
    lane: bulk
  note:
    schema: {type: object, required: [title, level], properties: {title: {type: string}, level: {type: number}}}
    template: one
    lane: urgent
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
  quote:
    schema: {type: object, required: [title, symbol, price], properties: {title: {type: string}, symbol: {type: string}, price: {type: number}}}
    key: symbol
    template: one
    rules:
      - {name: below, when: "event.symbol == sub.symbol && crosses_below(event.price, sub.level)", params: {symbol: string, level: number}}
      - {name: above, when: "event.symbol == sub.symbol && crosses_above(event.price, sub.level)", params: {symbol: string, level: number}}
  bulletin:
    schema: {type: object, required: [title], properties: {title: {type: string}}}
    template: one
    digest: {template: several, max: 1000}
templates:
  one: {subject: "{{ event.title }}", text: "<{{ event.title }}>\n"}
  several: {subject: "{{ count }} bulletins", text: "{%% for item in items %%}<{{ item.event.title }}>\n{%% endfor %%}"}
`
