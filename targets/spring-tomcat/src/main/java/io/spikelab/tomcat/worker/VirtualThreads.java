package io.spikelab.tomcat.worker;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.LongAdder;

/** A virtual thread for each task: no limit and no queue, only the scheduler's delay. */
final class VirtualThreads implements WorkerPool {

    private final WorkerQueue queue;
    private final ExecutorService threads;
    private final LongAdder running = new LongAdder();

    VirtualThreads(WorkerQueue queue, ExecutorService threads) {
        this.queue = queue;
        this.threads = threads;
    }

    @Override
    public void execute(Runnable command) {
        WorkerQueue.Task task = queue.enter(() -> count(command));
        try {
            threads.execute(task);
        } catch (RejectedExecutionException stopped) {
            queue.leave(task);
            throw stopped;
        }
    }

    private void count(Runnable command) {
        running.increment();
        try {
            command.run();
        } finally {
            running.decrement();
        }
    }

    @Override
    public double busyThreads() {
        return running.sum();
    }

    @Override
    public double currentThreads() {
        return running.sum();
    }

    @Override
    public double maximumThreads() {
        return Double.POSITIVE_INFINITY;
    }

    @Override
    public double spareThreads() {
        return 0;
    }

    @Override
    public double queueCapacity() {
        return Double.POSITIVE_INFINITY;
    }

    @Override
    public void stop() {
        threads.shutdownNow();
    }
}
