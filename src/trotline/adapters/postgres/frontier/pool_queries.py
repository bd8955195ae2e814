"""The queries of `load_pool_rings.py`: members of pools for many lanes at once."""

from trotline.adapters.postgres.frontier import lane_member_rows, member_limits
from trotline.rules.member_choice import AT_HEAD, IN_RING, OUT, UNLIMITED

_LANES = "unnest($1::bigint[], $2::text[], $3::bigint[], $4::integer[]) AS w(pace, pool, only_member, n)"
_RING = "r.state, r.position, q.rules"
_WITH_RING = "LEFT JOIN ring r ON r.pace = w.pace LEFT JOIN pool q ON q.name = w.pool"


def _due(place: int) -> str:
    return f"""(
    SELECT {place} AS place, 0::bigint AS dealt, false AS known, {lane_member_rows.COLUMNS}, {member_limits.COLUMNS}
    FROM identity i LEFT JOIN pool_member m ON m.pool = w.pool AND m.member = i.member
    WHERE i.pace = w.pace AND i.place = {place} AND i.due <= $6 AND (i.banned_at = 0 OR i.due <= $5)
        AND (m.running IS NULL OR (m.running < coalesce(q.most, {UNLIMITED})
            AND (m.last_pace <> i.pace OR m.yield_until <= $5)))
    ORDER BY i.due, i.position LIMIT w.n)"""


_FRESH = f"""(
    SELECT {IN_RING}, m.seq, i.member IS NOT NULL, m.member, 0, 0, 0, 0, 0, 0, 0, {member_limits.COLUMNS}
    FROM pool_member m LEFT JOIN identity i ON i.pace = w.pace AND i.member = m.member
    WHERE m.pool = w.pool AND m.seq > coalesce(r.dealt, 0) AND (w.only_member = 0 OR m.member = w.only_member)
    ORDER BY m.seq LIMIT w.n)"""

FOR_LEASE = f"""
SELECT w.pace, {_RING}, c.* FROM {_LANES} {_WITH_RING}
LEFT JOIN LATERAL ({_due(AT_HEAD)} UNION ALL {_FRESH} UNION ALL {_due(IN_RING)} LIMIT w.n) c ON true
"""
"""In the order of choice."""

FOR_RETURN = f"""
SELECT w.pace, {_RING}, {lane_member_rows.COLUMNS}, {member_limits.COLUMNS}
FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS w(pace, pool, member) {_WITH_RING}
LEFT JOIN identity i ON i.pace = w.pace AND i.member = w.member AND i.place = {OUT}
LEFT JOIN pool_member m ON m.pool = w.pool AND m.member = w.member
"""


def _first(place: int, condition: str) -> str:
    return f"""(
    SELECT {place} AS place, i.due, i.banned_at, coalesce(m.running, 0) >= w.most AS busy,
        CASE WHEN m.last_pace = i.pace THEN m.yield_until ELSE 0 END AS yield_until
    FROM identity i LEFT JOIN pool_member m ON m.pool = w.pool AND m.member = i.member
    WHERE i.pace = w.pace AND i.place = {place} AND {condition}
        (w.account AND coalesce(m.running, 0) >= w.most
         AND i.due - CASE WHEN i.banned_at > 0 THEN 0 ELSE $8 END <= $7)
    ORDER BY i.due, i.position LIMIT 1)"""


FREE_AT = f"""
SELECT w.pace, c.* FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[])
    AS w(pace, pool, only_member, dealt, most, account)
CROSS JOIN LATERAL (
    (SELECT NULL::integer AS place, 0::float8 AS due, 0::float8 AS banned_at, false AS busy, 0::float8 AS yield_until
     FROM pool_member m WHERE m.pool = w.pool AND m.seq > w.dealt
        AND (w.only_member = 0 OR m.member = w.only_member) LIMIT 1)
    UNION ALL {_first(AT_HEAD, "")} UNION ALL {_first(AT_HEAD, "NOT")}
    UNION ALL {_first(IN_RING, "")} UNION ALL {_first(IN_RING, "NOT")}) c
ORDER BY c.due
"""
"""Place NULL: a member that has not been in this ring. Accounts that are due and busy are waited for without a time:
the first of them, and the first other member."""

WRITE_RINGS = """
INSERT INTO ring (pace, pool, state, position, dealt)
SELECT * FROM unnest(%s::bigint[], %s::text[], %s::bytea[], %s::bigint[], %s::bigint[])
ON CONFLICT (pace) DO UPDATE SET state = excluded.state, position = excluded.position, dealt = excluded.dealt
"""
