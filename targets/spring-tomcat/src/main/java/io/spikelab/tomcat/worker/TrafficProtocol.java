package io.spikelab.tomcat.worker;

import org.apache.coyote.http11.Http11NioProtocol;
import org.apache.tomcat.util.net.NioChannel;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SocketEvent;
import org.apache.tomcat.util.net.SocketWrapperBase;

/** Tomcat's HTTP connector, which tells requests from closing connections before it hands them to a worker. */
public final class TrafficProtocol extends Http11NioProtocol {

    /** Called by Tomcat, by the name of the class. */
    public TrafficProtocol() {
        super(new Endpoint());
    }

    private static final class Endpoint extends NioEndpoint {

        @Override
        public boolean processSocket(SocketWrapperBase<NioChannel> socket, SocketEvent event, boolean dispatch) {
            if (!dispatch || socket == null) {
                return super.processSocket(socket, event, dispatch);
            }
            TaskContent.announce(socket, event);
            try {
                return super.processSocket(socket, event, true);
            } finally {
                TaskContent.clear();
            }
        }
    }
}
