package io.spikelab.tomcat.worker;

import java.io.IOException;
import org.apache.tomcat.util.net.NioChannel;
import org.apache.tomcat.util.net.SocketEvent;
import org.apache.tomcat.util.net.SocketWrapperBase;

/** Tells the pool, on the thread that hands it a task, whether that task carries a request. */
final class TaskContent {

    private static final ThreadLocal<Boolean> NO_REQUEST = new ThreadLocal<>();

    private TaskContent() {
    }

    static boolean isRequest() {
        return NO_REQUEST.get() == null;
    }

    static void announce(SocketWrapperBase<NioChannel> socket, SocketEvent event) {
        if (event != SocketEvent.OPEN_READ || isReadableButEmpty(socket)) {
            NO_REQUEST.set(true);
        }
    }

    static void clear() {
        NO_REQUEST.remove();
    }

    /** A socket that is reported readable and holds no byte was closed by its client. */
    private static boolean isReadableButEmpty(SocketWrapperBase<NioChannel> socket) {
        try {
            return socket.getSocket().getIOChannel().socket().getInputStream().available() == 0;
        } catch (IOException | RuntimeException unknown) {
            return false;
        }
    }
}
