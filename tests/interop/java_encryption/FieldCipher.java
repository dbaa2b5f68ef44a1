import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** Reads and writes the encrypted values of one field, with one data key. */
final class FieldCipher {
    private final byte[] macKey, streamKey, context;
    private final int keyId;

    FieldCipher(byte[] dataKey, int keyId, String stream, String field) {
        this.macKey = Arrays.copyOf(dataKey, 32);
        this.streamKey = Arrays.copyOfRange(dataKey, 32, 64);
        this.keyId = keyId;
        this.context = (stream + "\0" + field).getBytes(StandardCharsets.UTF_8);
    }

    static byte[] unwrap(byte[] keyEncryptionKey, byte[] wrapped) throws GeneralSecurityException {
        Cipher cipher = Cipher.getInstance("AESWrap");
        cipher.init(Cipher.UNWRAP_MODE, new SecretKeySpec(keyEncryptionKey, "AES"));
        return cipher.unwrap(wrapped, "AES", Cipher.SECRET_KEY).getEncoded();
    }

    byte[] open(byte[] value) throws GeneralSecurityException {
        ByteBuffer in = ByteBuffer.wrap(value);
        byte[] nonce = new byte[in.get() == 2 ? 16 : 0], tag = new byte[16];
        if (in.getInt() != keyId) throw new GeneralSecurityException("another data key");
        byte[] sealed = new byte[in.get(nonce).get(tag).remaining()];
        in.get(sealed);
        byte[] plain = aes("AES/CTR/NoPadding", streamKey, counter(tag), sealed);
        if (!MessageDigest.isEqual(tag, tag(nonce, plain))) throw new GeneralSecurityException("cannot be decrypted");
        return plain;
    }

    byte[] seal(byte[] plain) throws GeneralSecurityException {
        byte[] tag = tag(new byte[0], plain), sealed = aes("AES/CTR/NoPadding", streamKey, counter(tag), plain);
        return ByteBuffer.allocate(21 + plain.length).put((byte) 1).putInt(keyId).put(tag).put(sealed).array();
    }

    private static byte[] counter(byte[] tag) {
        byte[] made = tag.clone();
        made[8] &= 0x7f;
        made[12] &= 0x7f;
        return made;
    }

    private byte[] tag(byte[] nonce, byte[] plain) throws GeneralSecurityException { // S2V of RFC 5297
        byte[] state = add(doubled(mac(new byte[16])), mac(context));
        if (nonce.length > 0) state = add(doubled(state), mac(nonce));
        if (plain.length >= 16) return mac(add(plain, state));
        byte[] padded = Arrays.copyOf(plain, 16);
        padded[plain.length] = (byte) 0x80;
        return mac(add(padded, doubled(state)));
    }

    private byte[] mac(byte[] data) throws GeneralSecurityException { // CMAC of RFC 4493
        byte[] zero = new byte[16], subkey = doubled(aes("AES/CBC/NoPadding", macKey, zero, zero));
        byte[] padded = Arrays.copyOf(data, (data.length + 15) / 16 * 16);
        if (padded.length > data.length) {
            padded[data.length] = (byte) 0x80;
            subkey = doubled(subkey);
        }
        byte[] chain = aes("AES/CBC/NoPadding", macKey, zero, add(padded, subkey));
        return Arrays.copyOfRange(chain, chain.length - 16, chain.length);
    }

    private static byte[] add(byte[] data, byte[] block) { // at the end of the data
        byte[] made = data.clone();
        for (int i = 1; i <= 16; i++) made[made.length - i] ^= block[16 - i];
        return made;
    }

    private static byte[] doubled(byte[] block) {
        byte[] made = new byte[16];
        for (int i = 0; i < 16; i++) made[i] = (byte) (block[i] << 1 | (i < 15 ? (block[i + 1] & 0xff) >> 7 : 0));
        if (block[0] < 0) made[15] ^= (byte) 0x87;
        return made;
    }

    private static byte[] aes(String mode, byte[] key, byte[] start, byte[] data) throws GeneralSecurityException {
        Cipher cipher = Cipher.getInstance(mode);
        cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"), new IvParameterSpec(start));
        return cipher.doFinal(data);
    }
}
