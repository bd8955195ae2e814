"""The tables of a job whose new tasks wait on shelves of a broker (rules/broker_shelves.py); other jobs have none.

parcel_N    a parcel, until it is moved to the queues. Its number is the order in which it was made; `chance` is random:
            a server that crashed may repeat numbers that it had not flushed
unsent_N    its tasks, until it is published; claimed_at: when a client took it to do that
shelf_N     by shelf: parcels that were published and not moved, and tasks that are unpublished or on the shelf. The sum
            over stripes, like `counter`
onshelf_N   a lane's tasks on the main shelves, and on those of its group. Guarded by the lock of the lane
"""

from trotline.adapters.postgres.frontier.schema import CHURN


def shelf_tables(job: int) -> str:
    """SQL that creates them; `schema.drop_tables_of_job` drops them."""
    return f"""
CREATE TABLE parcel_{job} (
    id bigint PRIMARY KEY, chance bigint NOT NULL, shelf text NOT NULL, tasks integer NOT NULL
) WITH ({CHURN});
CREATE TABLE unsent_{job} (id bigint PRIMARY KEY, claimed_at float8 NOT NULL, body bytea NOT NULL) WITH ({CHURN});
CREATE INDEX unsent_{job}_order ON unsent_{job} (claimed_at, id);
CREATE TABLE shelf_{job} (
    name text NOT NULL, stripe smallint NOT NULL, parcels bigint NOT NULL, tasks bigint NOT NULL,
    PRIMARY KEY (name, stripe)
) WITH (fillfactor = 10, {CHURN});
CREATE TABLE onshelf_{job} (
    lane bigint PRIMARY KEY, team smallint NOT NULL, main bigint NOT NULL, over bigint NOT NULL
) WITH (fillfactor = 50, {CHURN});
CREATE INDEX onshelf_{job}_over ON onshelf_{job} (team, lane) WHERE over > 0;
"""
