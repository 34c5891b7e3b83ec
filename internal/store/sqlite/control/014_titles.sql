-- Texts for the subscriber; NULL: those of the rule, and else the title of the topic.
ALTER TABLE subscriptions ADD COLUMN title TEXT;
ALTER TABLE subscriptions ADD COLUMN description TEXT;
