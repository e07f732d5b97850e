-- alerts.db (version 2, journal mode wal, file mode 600)
CREATE INDEX attempts_at ON attempts (receiver, at);
CREATE INDEX history_at ON history (at);
CREATE INDEX outbox_parcel ON outbox (parcel) WHERE parcel IS NOT NULL;
CREATE INDEX outbox_waiting ON outbox (receiver, topic) WHERE parcel IS NULL;
CREATE INDEX parcels_open ON parcels (receiver) WHERE state = 'open';
CREATE TABLE alerts (fingerprint TEXT PRIMARY KEY, phase TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE attempts (receiver TEXT NOT NULL, parcel TEXT NOT NULL, at REAL NOT NULL, under_way INTEGER NOT NULL);
CREATE TABLE health (receiver TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE history (
    place INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, what TEXT NOT NULL, body BLOB NOT NULL
);
CREATE TABLE merged (fingerprint TEXT PRIMARY KEY, into_fingerprint TEXT NOT NULL);
CREATE TABLE notes (name TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE outbox (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    receiver TEXT NOT NULL, topic TEXT NOT NULL, body BLOB NOT NULL,
    parcel TEXT, position INTEGER  -- NULL while it waits
);
CREATE TABLE parcels (
    id TEXT PRIMARY KEY, receiver TEXT NOT NULL, state TEXT NOT NULL,
    attempts INTEGER NOT NULL, failures INTEGER NOT NULL,
    tried_at REAL NOT NULL, next_at REAL NOT NULL, done_at REAL, word TEXT
);
CREATE TABLE silences (id TEXT PRIMARY KEY, ends_at REAL NOT NULL, body BLOB NOT NULL);
CREATE TABLE sqlite_sequence(name,seq);
CREATE TABLE told (receiver TEXT NOT NULL, topic TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (receiver, topic));

-- cleanup.db (version 3, journal mode wal, file mode 600)
CREATE INDEX items_ended ON items (ended_at);
CREATE INDEX items_trash ON items (trash) WHERE trash IS NOT NULL;
CREATE INDEX runs_state ON runs (state);
CREATE TABLE announced (policy TEXT NOT NULL, fingerprint TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (policy, fingerprint));
CREATE TABLE answered (link TEXT PRIMARY KEY, expires_at REAL NOT NULL, body BLOB);
CREATE TABLE items (
    run TEXT NOT NULL, place INTEGER NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, request TEXT,
    ended_at REAL, trash TEXT, body BLOB NOT NULL, PRIMARY KEY (run, place)
);
CREATE TABLE keeps (item TEXT PRIMARY KEY, until REAL NOT NULL, body BLOB NOT NULL);
CREATE TABLE messages (place INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
CREATE TABLE notes (name TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE notices (
    policy TEXT NOT NULL, id TEXT NOT NULL, told_at REAL NOT NULL, owner TEXT, PRIMARY KEY (policy, id)
);
CREATE TABLE runs (
    place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, policy TEXT NOT NULL, node TEXT NOT NULL,
    state TEXT NOT NULL, started_at REAL NOT NULL, body BLOB NOT NULL, plan BLOB
);
CREATE TABLE sqlite_sequence(name,seq);
CREATE TABLE tried (id TEXT PRIMARY KEY, at REAL NOT NULL);

-- record.db (version 3, journal mode wal, file mode 600)
CREATE TABLE disks (
    day INTEGER NOT NULL, kind TEXT NOT NULL, node TEXT NOT NULL, user TEXT NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (day, kind, node, user)
) WITHOUT ROWID;
CREATE TABLE models (id INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, share REAL NOT NULL);
CREATE TABLE sqlite_sequence(name,seq);
CREATE TABLE "usage" (
    dimension TEXT NOT NULL, model_id INTEGER NOT NULL, hour INTEGER NOT NULL, name TEXT NOT NULL,
    allocated REAL NOT NULL, used REAL NOT NULL, measured REAL NOT NULL, idle REAL NOT NULL, zombie REAL NOT NULL, faulty REAL NOT NULL, free REAL NOT NULL, unknown REAL NOT NULL, PRIMARY KEY (dimension, model_id, hour, name)
) WITHOUT ROWID;
CREATE TABLE watched (hour INTEGER PRIMARY KEY, seconds REAL NOT NULL);

-- audit.db (version 1, journal mode wal, file mode 600)
CREATE TABLE deeds (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, who TEXT NOT NULL, role TEXT NOT NULL, how TEXT NOT NULL,
    peer TEXT NOT NULL, what TEXT NOT NULL, target TEXT NOT NULL, result TEXT NOT NULL, detail TEXT NOT NULL
);
CREATE TABLE sqlite_sequence(name,seq);

-- history.db (version 1, journal mode wal, file mode 600)
CREATE INDEX blocks_hour ON blocks (hour);
CREATE TABLE blocks (
    series TEXT NOT NULL, hour INTEGER NOT NULL, layout INTEGER NOT NULL, coarse BLOB NOT NULL, fine BLOB,
    PRIMARY KEY (series, hour)
);
CREATE TABLE hours (hour INTEGER PRIMARY KEY, fine INTEGER NOT NULL);
CREATE TABLE layouts (id INTEGER PRIMARY KEY, used INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE minutes (at INTEGER PRIMARY KEY, entities BLOB NOT NULL, body BLOB NOT NULL);

