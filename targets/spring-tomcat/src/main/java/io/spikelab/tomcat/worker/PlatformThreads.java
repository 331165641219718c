package io.spikelab.tomcat.worker;

import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.tomcat.util.threads.TaskQueue;
import org.apache.tomcat.util.threads.TaskThreadFactory;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;

/** Tomcat's own pool and queue, so that it grows to its maximum before it queues, with each wait timed. */
final class PlatformThreads extends ThreadPoolExecutor implements WorkerPool {

    /** As in Tomcat's own pool. */
    private static final long IDLE_SECONDS = 60;

    private final WorkerQueue queue;
    private final int capacity;

    PlatformThreads(WorkerQueue queue, String name, int spare, int maximum, int capacity) {
        this(queue, name, spare, maximum, capacity, new TaskQueue(capacity));
    }

    private PlatformThreads(WorkerQueue queue, String name, int spare, int maximum, int capacity, TaskQueue tasks) {
        super(spare, maximum, IDLE_SECONDS, TimeUnit.SECONDS, tasks,
                new TaskThreadFactory(name, true, Thread.NORM_PRIORITY));
        tasks.setParent(this);
        this.queue = queue;
        this.capacity = capacity;
    }

    @Override
    public void execute(Runnable command) {
        WorkerQueue.Task task = queue.enter(command);
        try {
            super.execute(task);
        } catch (RejectedExecutionException full) {
            queue.leave(task);
            throw full;
        }
    }

    @Override
    public double busyThreads() {
        return getActiveCount();
    }

    @Override
    public double currentThreads() {
        return getPoolSize();
    }

    @Override
    public double maximumThreads() {
        return getMaximumPoolSize();
    }

    @Override
    public double spareThreads() {
        return getCorePoolSize();
    }

    @Override
    public double queueCapacity() {
        return capacity;
    }

    @Override
    public void stop() {
        shutdownNow();
    }
}
