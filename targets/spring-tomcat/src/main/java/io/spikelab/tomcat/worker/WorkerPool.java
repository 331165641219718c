package io.spikelab.tomcat.worker;

import java.util.concurrent.Executor;

/** The threads that work on requests. Numbers are doubles because an unlimited one is infinite. */
public interface WorkerPool extends Executor {

    /** Threads working on a task now. */
    double busyThreads();

    /** Threads that exist now. */
    double currentThreads();

    /** Most threads there can be. */
    double maximumThreads();

    /** Threads kept although idle. */
    double spareThreads();

    /** Most tasks that can wait for a thread. */
    double queueCapacity();

    /** Drops the tasks that wait and interrupts those that run, where that can be done. */
    void stop();
}
