package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// document configures the service of the examples, which writes mails to files.
func document() []byte {
	return []byte(`
service: quakes
channels:
  mail: {driver: file, path: ` + server.mails + `, from: "Quakes <quakes@example.org>"}
templates:
  quake: {subject: "{{ event.place }}: {{ event.mag }}", text: "It shook."}
topics:
  earthquake:
    template: quake
    rules:
      - {name: strong, when: "event.mag >= sub.from", params: {from: number}}
`)
}

// Publish an event, which sends a mail to each matching subscriber.
func Example() {
	ctx := context.Background()
	c := connect() // client.New("http://127.0.0.1:8085", key)
	if _, err := c.Apply(ctx, document(), false); err != nil {
		fmt.Println(err)
		return
	}
	_, err := c.PutSubscription(ctx, client.Subscription{ID: "ada-strong", Topic: "earthquake", Channel: "mail",
		To: "ada@example.com", Rule: "strong", Params: []byte(`{"from":5}`)})
	if err != nil {
		fmt.Println(err)
		return
	}

	quake := map[string]any{"place": "Alaska", "mag": 6.1}
	event, err := c.Publish(ctx, "earthquake", quake, client.PublishOptions{ID: "us7000abcd"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Sent again under the same id, nothing happens again.
	again, err := c.Publish(ctx, "earthquake", quake, client.PublishOptions{ID: "us7000abcd"})
	fmt.Println(again.Duplicate, err)

	for { // what became of it
		b, err := c.Event(ctx, event.ID)
		if err == nil && b.State == "completed" {
			fmt.Println(b.Matched, "wanted it,", b.Counts[fanfare.Accepted], "sent")
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	// Output:
	// true <nil>
	// 1 wanted it, 1 sent
}

// Import subscriptions from a sequence. Invalid ones are reported and do not stop the others.
func ExampleClient_PutSubscriptions() {
	ctx := context.Background()
	c := connect()
	if _, err := c.Apply(ctx, document(), false); err != nil {
		fmt.Println(err)
		return
	}
	people := []string{"bob@example.com", "nobody", "eve@example.com"}
	sum, err := c.PutSubscriptions(ctx, func(yield func(client.Subscription, error) bool) {
		for _, to := range people {
			if !yield(client.Subscription{Topic: "earthquake", Channel: "mail", To: to, Filter: "event.mag > 7.0"}, nil) {
				return
			}
		}
	}, nil)
	fmt.Println(sum.Created, "created,", sum.Failed, "failed:", err)
	for _, bad := range sum.Errors {
		fmt.Println("line", bad.Line, bad.Error.Pointer)
	}

	count := 0
	for s, err := range c.Subscriptions(ctx, client.SubscriptionQuery{Subscriber: "bob@example.com"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		count++
		fmt.Println(s.Filter)
	}
	fmt.Println(count)
	// Output:
	// 2 created, 1 failed: <nil>
	// line 2 /to
	// event.mag > 7.0
	// 1
}

// Write to a person who has not subscribed, and wait until the message has left.
func ExampleClient_Send() {
	ctx := context.Background()
	c := connect()
	if _, err := c.Apply(ctx, document(), false); err != nil {
		fmt.Println(err)
		return
	}
	m, err := c.Send(ctx, client.MessageRequest{
		Channel: "mail", To: "carol@example.com", Reference: "order-4711", Data: []byte(`{"order":4711}`),
		Content: &client.MessageContent{Subject: "Order {{ event.order }}", Text: "Thank you."},
	}, client.SendOptions{Key: "order-4711", Wait: 10 * time.Second})
	fmt.Println(m.State, err)
	for one, err := range c.MessagesBy(ctx, "order-4711") {
		fmt.Println(one.Reference, one.ID == m.ID, err)
	}
	mails, err := os.ReadDir(server.mails)
	fmt.Println(len(mails) > 0, err)
	// Output:
	// accepted <nil>
	// order-4711 true <nil>
	// true <nil>
}

// Explain why an event matches a subscription or not.
func ExampleClient_ExplainData() {
	ctx := context.Background()
	c := connect()
	if _, err := c.Apply(ctx, document(), false); err != nil {
		fmt.Println(err)
		return
	}
	_, err := c.PutSubscription(ctx, client.Subscription{ID: "dan", Topic: "earthquake", Channel: "mail", To: "dan@example.com",
		Filter: `event.mag > 5.0 && event.place.contains("Alaska")`})
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := c.ExplainData(ctx, "dan", "", []byte(`{"mag":4.2,"place":"Off Alaska"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Wanted)
	for _, part := range e.Condition.Parts {
		fmt.Println(part.Result, part.Text)
	}
	// Output:
	// false
	// false event.mag > 5.0
	// true event.place.contains("Alaska")
}

// Change a Subscriber only if nobody else has changed it since it was read.
func ExampleClient_PutSubscriber() {
	ctx := context.Background()
	c := connect()
	if _, err := c.Apply(ctx, document(), false); err != nil {
		fmt.Println(err)
		return
	}
	read, err := c.PutSubscriber(ctx, client.Subscriber{ID: "fay", Locale: "en", Addresses: []client.Address{{Kind: "mail", Address: "fay@example.com"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := c.PatchSubscriber(ctx, "fay", map[string]string{"locale": "fr"}, ""); err != nil { // somebody else
		fmt.Println(err)
		return
	}
	read.Locale = "de"
	_, err = c.PutSubscriber(ctx, read)
	fmt.Println(fanfare.CodeOf(err))
	now, err := c.Subscriber(ctx, "fay")
	fmt.Println(now.Locale, err)
	// Output:
	// precondition_failed
	// fr <nil>
}

// An error says what is wrong, where, and what to do.
func ExampleClient_Apply() {
	_, err := connect().Apply(context.Background(), []byte("service: quakes\ntopcis: {}\n"), true)
	var wrong *fanfare.Error
	if errors.As(err, &wrong) {
		fmt.Println(wrong.Code, "at line", wrong.Line)
		fmt.Println(strings.Contains(wrong.Hint, "topics"))
	}
	// Output:
	// invalid at line 2
	// true
}

// Change one rule of a topic, unless somebody else has changed it since.
func ExampleClient_Rules() {
	ctx := context.Background()
	c := connect()
	if _, err := c.Apply(ctx, document(), false); err != nil {
		fmt.Println(err)
		return
	}
	c = c.ForService("quakes")
	rules := c.Rules("earthquake")
	rule, err := rules.Put(ctx, "weak", client.Kept[client.Rule]{Value: client.Rule{When: "event.mag < 3.0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := rules.Put(ctx, "weak", client.Kept[client.Rule]{Value: client.Rule{When: "event.mag < 2.0"}}); err != nil { // somebody else
		fmt.Println(err)
		return
	}
	rule.Value.When = "event.mag < 1.0"
	_, err = rules.Put(ctx, "weak", rule)
	fmt.Println(fanfare.CodeOf(err))
	for r, err := range rules.All(ctx) {
		fmt.Println(r.Name, r.When, err)
	}
	fmt.Println(rules.Delete(ctx, "weak", ""))
	// Output:
	// precondition_failed
	// strong event.mag >= sub.from <nil>
	// weak event.mag < 2.0 <nil>
	// <nil>
}
