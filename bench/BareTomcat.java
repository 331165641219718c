import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

/**
 * Tomcat with one servlet that gives the target's answer to /hello, and nothing that counts or times.
 *
 * <p>{@code java -cp 'LIBRARIES/*' BareTomcat.java PORT NAME=VALUE...}, the attributes of its connector.
 */
public final class BareTomcat {

    private static final byte[] ANSWER = "Hello, world\n".getBytes(StandardCharsets.US_ASCII);

    private BareTomcat() {
    }

    static final class Hello extends HttpServlet {

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            Integer.parseInt(request.getParameter("ms"));
            response.setContentType("text/plain;charset=UTF-8");
            response.setContentLength(ANSWER.length);
            response.getOutputStream().write(ANSWER);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(System.getProperty("java.io.tmpdir"));
        Connector connector = new Connector();
        connector.setPort(Integer.parseInt(arguments[0]));
        connector.setProperty("address", "127.0.0.1");
        for (int i = 1; i < arguments.length; i++) {
            String[] attribute = arguments[i].split("=", 2);
            if (!connector.setProperty(attribute[0], attribute[1])) {
                throw new IllegalArgumentException(arguments[i]);
            }
        }
        tomcat.setConnector(connector);
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "hello", new Hello());
        context.addServletMappingDecoded("/hello", "hello");
        tomcat.start();
        tomcat.getServer().await();
    }
}
