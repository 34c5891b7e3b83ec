<?xml version="1.0" encoding="UTF-8"?>
<!-- Tells the owner of shares what they are worth. The attributes of a subscriber are name and shares. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output encoding="UTF-8"/>
  <xsl:decimal-format name="en" decimal-separator="." grouping-separator=","/>
  <xsl:decimal-format name="de" decimal-separator="," grouping-separator="."/>

  <xsl:variable name="name" select="/recipient/attributes/name"/>
  <xsl:variable name="shares" select="/recipient/attributes/shares"/>
  <xsl:variable name="event" select="/recipient/document/data/event/data"/>
  <xsl:variable name="german" select="starts-with(/recipient/locale, 'de')"/>

  <xsl:template name="amount">
    <xsl:param name="of"/>
    <xsl:choose>
      <xsl:when test="$german"><xsl:value-of select="format-number($of, '#.##0,00', 'de')"/></xsl:when>
      <xsl:otherwise><xsl:value-of select="format-number($of, '#,##0.00', 'en')"/></xsl:otherwise>
    </xsl:choose>
    <xsl:value-of select="concat(' ', $event/currency)"/>
  </xsl:template>

  <xsl:template match="/recipient">
    <xsl:variable name="price"><xsl:call-template name="amount"><xsl:with-param name="of" select="$event/price"/></xsl:call-template></xsl:variable>
    <xsl:variable name="value"><xsl:call-template name="amount"><xsl:with-param name="of" select="$event/price * $shares"/></xsl:call-template></xsl:variable>
    <message>
      <xsl:choose>
        <xsl:when test="not(number($shares) &gt; 0)">
          <error>the subscriber has no shares</error>
        </xsl:when>
        <xsl:when test="$german">
          <subject><xsl:value-of select="concat($event/company, ': ', $price)"/></subject>
          <text><xsl:value-of select="concat('Guten Tag ', $name, ',&#10;&#10;', $event/company, ' schloss bei ', $price, '. Ihre ', $shares, ' Aktien sind ', $value, ' wert.&#10;')"/></text>
          <html>
            <p>Guten Tag <xsl:value-of select="$name"/>,</p>
            <p><b><xsl:value-of select="$event/company"/></b> schloss bei <xsl:value-of select="$price"/>. Ihre <xsl:value-of select="$shares"/> Aktien sind <xsl:value-of select="$value"/> wert.</p>
          </html>
        </xsl:when>
        <xsl:otherwise>
          <subject><xsl:value-of select="concat($event/company, ': ', $price)"/></subject>
          <text><xsl:value-of select="concat('Dear ', $name, ',&#10;&#10;', $event/company, ' closed at ', $price, '. Your ', $shares, ' shares are worth ', $value, '.&#10;')"/></text>
          <html>
            <p>Dear <xsl:value-of select="$name"/>,</p>
            <p><b><xsl:value-of select="$event/company"/></b> closed at <xsl:value-of select="$price"/>. Your <xsl:value-of select="$shares"/> shares are worth <xsl:value-of select="$value"/>.</p>
          </html>
        </xsl:otherwise>
      </xsl:choose>
    </message>
  </xsl:template>
</xsl:stylesheet>
