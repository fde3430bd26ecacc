-- Which runs have an attribute: a tree, because a hash index puts all entries of one value into a
-- chain of pages, which every further entry walks along to its end. The entry holds the hash of
-- the value, which may be longer than an entry; the check of the value itself is the reader's.
DROP INDEX durable_attributes_value_idx;
CREATE INDEX durable_attributes_value_idx ON durable_attributes (name, md5(value));
