package io.spikelab.tomcat.worker;

import java.util.concurrent.atomic.LongAdder;
import java.util.function.DoubleConsumer;

/**
 * Times and counts what waits for a worker thread.
 *
 * <p>A task is not a request: a connection that its client closes is a task too, and one task works through
 * several requests that came pipelined. So a task carries its wait, and the first request in it takes it.
 */
public final class WorkerQueue {

    private final DoubleConsumer waitSeconds;
    private final LongAdder requestsWaiting = new LongAdder();
    private final ThreadLocal<Task> current = new ThreadLocal<>();
    private final SafeInstrument instrument = new SafeInstrument("worker-queue waits");

    /**
     * @param waitSeconds receives each request's wait
     */
    public WorkerQueue(DoubleConsumer waitSeconds) {
        this.waitSeconds = waitSeconds;
    }

    /** Requests that no worker has taken yet. */
    public long requestsWaiting() {
        return requestsWaiting.sum();
    }

    /** A task joins the queue. */
    Task enter(Runnable command) {
        Task task = new Task(command, TaskContent.isRequest());
        if (task.isRequest) {
            requestsWaiting.increment();
        }
        return task;
    }

    /** A task leaves the queue, to be worked on or because it was refused. */
    void leave(Task task) {
        if (task.isRequest) {
            requestsWaiting.decrement();
        }
    }

    /** Hands out the wait of the request that this thread begins; called once for each. */
    void requestBegins() {
        Task task = current.get();
        long nanoseconds = task == null ? 0 : task.takeWait();
        instrument.observe(() -> waitSeconds.accept(nanoseconds / 1e9));
    }

    /** A command and the moment it joined the queue. */
    final class Task implements Runnable {

        private final Runnable command;
        private final boolean isRequest;
        private final long entered = System.nanoTime();
        private long waited;

        private Task(Runnable command, boolean isRequest) {
            this.command = command;
            this.isRequest = isRequest;
        }

        @Override
        public void run() {
            waited = System.nanoTime() - entered;
            leave(this);
            current.set(this);
            try {
                command.run();
            } finally {
                current.remove();
            }
        }

        private long takeWait() {
            long wait = waited;
            waited = 0;
            return wait;
        }
    }
}
