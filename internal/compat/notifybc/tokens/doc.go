// Package tokens replaces the tokens of the NotifyBC API in subjects and texts: {title}, {subscription::name},
// {unsubscription_url}.
//
// A token is the shortest text between { and } in one line. A token without a value, or whose value is empty, 0 or false,
// stays as it is written, so that style sheets survive. \{x\} becomes {x}. Nothing is escaped for HTML.
//
// Most tokens have one value for a whole notification. Those of a subscription either get the values of one subscription
// (Text), or become outputs of Liquid that the pipeline fills in for each subscription (Liquid), so that a broadcast is
// compiled once.
package tokens
