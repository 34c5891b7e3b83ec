-- Texts of subscriptions for their subscribers.
-- +goose Up

ALTER TABLE subscriptions
  ADD COLUMN title text,
  ADD COLUMN description text;
COMMENT ON COLUMN subscriptions.title IS 'For the subscriber, in place of the condition; NULL: the title of the rule, or of the topic.';
COMMENT ON COLUMN subscriptions.description IS 'For the subscriber; NULL: the description of the rule.';
