package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// The types about the cost and the matches of conditions.
type (
	// A ConditionReport lists the cost of the conditions that no index finds.
	ConditionReport = wire.ConditionReport
	// A DryRun describes the recipients that an event would have.
	DryRun = wire.DryRun
)

// ReportConditions lists the most expensive conditions of the service or, if topic is not
// "", of one of its topics. It lists at most limit of them; 0 means the default of the server.
func (c *Client) ReportConditions(ctx context.Context, topic string, limit int) (ConditionReport, error) {
	query := url.Values{}
	if topic != "" {
		query.Set("topic", topic)
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var report ConditionReport
	err := c.call(ctx, get("/v1/reports/conditions", query), nil, &report)
	return report, err
}

// DryRun returns whom an event with this data would reach, and lists sample of the subscriptions.
// audienceFilter may be "". Nothing is published.
func (c *Client) DryRun(ctx context.Context, topic string, data json.RawMessage, audienceFilter string, sample int) (DryRun, error) {
	query := url.Values{"sample": {strconv.Itoa(sample)}}
	if audienceFilter != "" {
		query.Set("audience_filter", audienceFilter)
	}
	return c.match(ctx, topic, request{query: query, contentType: "application/json", body: data})
}

// match matches an event without publishing it.
func (c *Client) match(ctx context.Context, topic string, r request) (DryRun, error) {
	r.method, r.path, r.repeatable = http.MethodPost, "/v1/topics/"+url.PathEscape(topic)+"/match", true
	var run DryRun
	err := c.call(ctx, r, nil, &run)
	return run, err
}

// A ConditionTest is a condition, and an event on which to try it.
type ConditionTest = wire.ConditionTest

// A ConditionResult says whether a condition is met, and why.
type ConditionResult = wire.ConditionResult

// TestCondition tries a condition on an event of a topic. Nothing is stored or sent. An error in the condition has its line and column.
func (c *Client) TestCondition(ctx context.Context, topic string, test ConditionTest) (ConditionResult, error) {
	var result ConditionResult
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/topics/" + url.PathEscape(topic) + "/test-condition", repeatable: true}, test, &result)
	return result, err
}
