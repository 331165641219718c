package io.spikelab.tomcat.authz;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.args.ExpiryOption;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XAddParams;
import redis.clients.jedis.params.XReadParams;
import redis.clients.jedis.resps.StreamEntry;

/**
 * How revocations are kept in Redis: an entry of a stream for those who follow it, and a key for those who look up.
 * Both are always written, so targets of either kind can share them and AUTHZ_BLACKLIST can be changed.
 */
final class RevocationStream {

    static final String NAME = "spikelab:revocations";
    static final StreamEntryID BEGIN = new StreamEntryID(0, 0);

    private static final String KEY_PREFIX = "spikelab:revoked:";
    private static final String ID = "id";
    private static final String EXPIRES = "expires_ms";
    private static final int PAGE = 1000;
    /** Clocks differ: an entry or key that is gone before its token expires is a token accepted again. */
    private static final long ENTRY_SLACK_MILLIS = Duration.ofHours(1).toMillis();
    private static final long KEY_SLACK_MILLIS = Duration.ofMinutes(1).toMillis();
    /** 31 December 9999; nothing later is meant. */
    private static final long LATEST_MILLIS = 253_402_300_799_999L;

    private RevocationStream() {
    }

    static String key(String id) {
        return KEY_PREFIX + id;
    }

    /**
     * Publishes revocations in their order, and drops entries so old that their tokens have expired. Doing so
     * twice does no harm.
     *
     * @throws redis.clients.jedis.exceptions.JedisException where one of them may not have been published
     */
    static void publish(Pipeline pipeline, List<VerifiedToken> tokens, long nowMillis) {
        XAddParams trimmed = new XAddParams().minId(oldestMillis(nowMillis) + "-0").exactTrimming();
        for (VerifiedToken token : tokens) {
            long expires = Math.min(token.expiresMillis(), LATEST_MILLIS);
            long keyExpires = expires + KEY_SLACK_MILLIS;
            pipeline.set(key(token.id()), "", new SetParams().nx().pxAt(keyExpires));
            pipeline.pexpireAt(key(token.id()), keyExpires, ExpiryOption.GT);
            pipeline.xadd(NAME, trimmed, Map.of(ID, token.id(), EXPIRES, String.valueOf(expires)));
        }
        for (Object answer : pipeline.syncAndReturnAll()) {
            if (answer instanceof JedisDataException refused) {
                throw refused;
            }
        }
    }

    private static long oldestMillis(long nowMillis) {
        return nowMillis - TokenIssuer.LONGEST_SECONDS * 1000 - ENTRY_SLACK_MILLIS;
    }

    /** Whether an entry that was there is gone, and not because of its age. */
    static boolean isLost(StreamEntryID entry, Jedis redis, long nowMillis) {
        return entry.getTime() > oldestMillis(nowMillis) && redis.xrange(NAME, entry, entry, 1).isEmpty();
    }

    /** Entries after one, oldest first, not all of them at once; none where there are none. */
    static List<StreamEntry> after(StreamEntryID last, Jedis redis) {
        return read(redis, new XReadParams().count(PAGE), last);
    }

    /** The same, but waits for one for a while. */
    static List<StreamEntry> await(StreamEntryID last, Jedis redis) {
        return read(redis, new XReadParams().count(PAGE).block(RedisAddress.BLOCK_MILLIS), last);
    }

    private static List<StreamEntry> read(Jedis redis, XReadParams how, StreamEntryID last) {
        var streams = redis.xread(how, Map.of(NAME, last));
        return streams == null || streams.isEmpty() ? List.of() : streams.get(0).getValue();
    }

    /** What an entry revokes; empty where it is not one of ours. */
    static Optional<VerifiedToken> revocation(StreamEntry entry) {
        String id = entry.getFields().get(ID);
        String expires = entry.getFields().get(EXPIRES);
        if (id == null || id.isBlank() || id.length() > TokenVerifier.MAXIMUM_ID_CHARACTERS
                || expires == null || !expires.matches("[0-9]{1,15}")) {
            return Optional.empty();
        }
        long millis = Long.parseLong(expires);
        return millis > LATEST_MILLIS ? Optional.empty() : Optional.of(new VerifiedToken(id, millis));
    }
}
