import java.io.IOException;
import java.io.ObjectOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.springframework.security.access.AccessDeniedException;
import org.springframework.security.access.intercept.RunAsUserToken;
import org.springframework.security.authentication.AccountExpiredException;
import org.springframework.security.authentication.AnonymousAuthenticationToken;
import org.springframework.security.authentication.BadCredentialsException;
import org.springframework.security.authentication.LockedException;
import org.springframework.security.authentication.RememberMeAuthenticationToken;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.core.GrantedAuthority;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.authority.SimpleGrantedAuthority;
import org.springframework.security.core.context.SecurityContextImpl;
import org.springframework.security.core.session.SessionInformation;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UsernameNotFoundException;
import org.springframework.security.oauth2.core.AuthorizationGrantType;
import org.springframework.security.oauth2.core.ClientAuthenticationMethod;
import org.springframework.security.oauth2.core.DefaultOAuth2AuthenticatedPrincipal;
import org.springframework.security.oauth2.core.OAuth2AccessToken;
import org.springframework.security.oauth2.core.OAuth2AuthenticationException;
import org.springframework.security.oauth2.core.OAuth2DeviceCode;
import org.springframework.security.oauth2.core.OAuth2Error;
import org.springframework.security.oauth2.core.OAuth2RefreshToken;
import org.springframework.security.oauth2.core.oidc.OidcIdToken;
import org.springframework.security.oauth2.core.oidc.OidcUserInfo;
import org.springframework.security.oauth2.core.oidc.user.DefaultOidcUser;
import org.springframework.security.oauth2.core.oidc.user.OidcUserAuthority;
import org.springframework.security.oauth2.core.user.DefaultOAuth2User;
import org.springframework.security.oauth2.core.user.OAuth2UserAuthority;

/** Writes objects of Spring Security, as sessions hold them, into a folder. */
public final class SpringObjects {
    private static final Instant AT = Instant.parse("2024-02-29T12:34:56.789Z");
    private static final List<GrantedAuthority> ROLES = AuthorityUtils.createAuthorityList("ROLE_USER", "ROLE_ADMIN");

    private SpringObjects() {
    }

    public static void main(String[] args) throws IOException {
        List<Object> all = new ArrayList<>(sessions());
        all.addAll(oauth());
        int number = 0;
        for (Object each : all) {
            String name = String.format("%02d-%s", number++, each.getClass().getName());
            try (ObjectOutputStream out = new ObjectOutputStream(
                    Files.newOutputStream(Path.of(args[0]).resolve(name + ".theirs")))) {
                out.writeObject(each);
            }
        }
    }

    private static List<Object> sessions() {
        User user = new User("ann", "{noop}secret", ROLES);
        UsernamePasswordAuthenticationToken token =
            UsernamePasswordAuthenticationToken.authenticated(user, "secret", ROLES);
        token.setDetails(Map.of("remote", "127.0.0.1"));
        return List.of(
            user, new SimpleGrantedAuthority("ROLE_USER"), token, new SecurityContextImpl(token),
            new AnonymousAuthenticationToken("key", "anonymous", ROLES),
            new RememberMeAuthenticationToken("key", user, ROLES), new TestingAuthenticationToken(user, "secret", ROLES),
            new RunAsUserToken("key", user, "secret", ROLES, token.getClass()),
            new SessionInformation(user, "session", new java.util.Date(0)),
            new AccessDeniedException("denied"),
            new BadCredentialsException("bad", new IllegalStateException("cause")), new LockedException("locked"),
            new AccountExpiredException("expired"), new UsernameNotFoundException("nobody"));
    }

    private static List<Object> oauth() {
        OidcIdToken id = new OidcIdToken("id", AT, AT.plusSeconds(60), Map.of("sub", "ann", "aud", List.of("shop")));
        OidcUserInfo information = new OidcUserInfo(Map.of("sub", "ann", "email", "ann@example.com"));
        Map<String, Object> attributes = Map.of("name", "ann", "id", 5);
        OAuth2Error error = new OAuth2Error("invalid_request", "why", "https://example.com/error");
        return List.of(
            new OAuth2AccessToken(
                OAuth2AccessToken.TokenType.BEARER, "access", AT, AT.plusSeconds(60), Set.of("read", "write")),
            new OAuth2RefreshToken("refresh", AT, AT.plusSeconds(600)), new OAuth2DeviceCode("device", AT, AT.plusSeconds(9)),
            id, information, new DefaultOidcUser(ROLES, id, information), new OidcUserAuthority(id, information),
            new DefaultOAuth2User(ROLES, attributes, "name"), new OAuth2UserAuthority(attributes),
            new DefaultOAuth2AuthenticatedPrincipal("ann", attributes, new ArrayList<>(ROLES)), error,
            new OAuth2AuthenticationException(error, "said"), AuthorizationGrantType.AUTHORIZATION_CODE,
            ClientAuthenticationMethod.CLIENT_SECRET_BASIC);
    }
}
